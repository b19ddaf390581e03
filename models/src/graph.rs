//! Loading and running the graphs of a pack in tract.
//!
//! Runs are independent of each other: tract would carry the state of a
//! recurrent layer from one run of a session to the next, so each run gets a
//! session of its own, and state goes in and out as tensors. Nothing is run by
//! more than one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::{DimLike, Op, RunOptions, ensure};
use tract_onnx::tract_core::ops::unimpl::UnimplementedOp;
use tract_onnx::tract_core::tract_linalg::multithread::Executor;

use crate::operators;
use crate::pack::{Pack, PackError};

/// Why a model cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The pack is not what it should be.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A file of the pack is no graph that this program can run.
    #[error("{pack}: {file} cannot be loaded: {reason}; rebuild the pack")]
    Graph {
        /// Folder of the pack.
        pack: String,
        /// The file inside it.
        file: String,
        /// What does not work.
        reason: String,
    },
}

/// Why a loaded model failed at a run.
#[derive(Debug, thiserror::Error)]
#[error("the model failed: {0:#}; the pack and the program do not fit each other, rebuild both")]
pub struct GraphError(TractError);

impl From<TractError> for GraphError {
    fn from(error: TractError) -> Self {
        Self(error)
    }
}

/// A graph that is ready to run.
pub(crate) struct Graph {
    plan: Arc<TypedSimplePlan>,
}

impl Graph {
    /// Loads one file of a pack.
    pub(crate) fn load(pack: &Pack, file: &str) -> Result<Self, LoadError> {
        let bytes = pack.read(file)?;
        prepare(&bytes)
            .map(|plan| Self { plan })
            .map_err(|error| LoadError::Graph {
                pack: pack.dir.display().to_string(),
                file: file.into(),
                reason: format!("{error:#}"),
            })
    }

    /// The same, and refuses a graph with other shapes than these; 0 stands for
    /// a length that is not fixed.
    pub(crate) fn load_shaped(
        pack: &Pack,
        file: &str,
        inputs: &[&[usize]],
        outputs: &[&[usize]],
    ) -> Result<Self, LoadError> {
        let graph = Self::load(pack, file)?;
        let found = graph.shapes();
        if found != [inputs, outputs] {
            return Err(LoadError::Graph {
                pack: pack.dir.display().to_string(),
                file: file.into(),
                reason: format!(
                    "it maps {:?} to {:?}, not {inputs:?} to {outputs:?}",
                    found[0], found[1]
                ),
            });
        }
        Ok(graph)
    }

    /// The shapes of the inputs and of the outputs; 0 stands for a length that is
    /// not fixed.
    pub(crate) fn shapes(&self) -> [Vec<Vec<usize>>; 2] {
        let model = self.plan.model();
        [shapes(model, &model.inputs), shapes(model, &model.outputs)]
    }

    /// Zeros of the type and shape of an input.
    pub(crate) fn zeros(&self, input: usize) -> TractResult<TValue> {
        let fact = self.plan.model().input_fact(input)?;
        let shape = fact.shape.eval_to_usize(&SymbolValues::default())?;
        Ok(Tensor::zero_dt(fact.datum_type, &shape)?.into_tvalue())
    }

    /// Runs the graph once.
    pub(crate) fn run(&self, inputs: TVec<TValue>) -> Result<TVec<TValue>, GraphError> {
        Ok(self.plan.run(inputs)?)
    }
}

/// The operators of one file of a pack as they will run, optimised, each with the
/// type of number that it gives, and how often they occur. For finding out whether
/// a quantised model really computes in integers: its file cannot tell.
pub fn operator_counts(pack: &Pack, file: &str) -> Result<BTreeMap<String, usize>, LoadError> {
    let graph = Graph::load(pack, file)?;
    let mut counts = BTreeMap::new();
    for node in graph.plan.model().nodes() {
        let given = node.outputs.first().map(|output| output.fact.datum_type);
        let given = given.map_or_else(String::new, |kind| format!(" {kind:?}").to_lowercase());
        *counts
            .entry(format!("{}{given}", node.op.name()))
            .or_insert(0) += 1;
    }
    Ok(counts)
}

fn prepare(mut bytes: &[u8]) -> TractResult<Arc<TypedSimplePlan>> {
    let model = operators::onnx()
        .with_ignore_value_info(true)
        .model_for_read(&mut bytes)?;
    let unknown = unknown_operators(&model);
    ensure!(
        unknown.is_empty(),
        "this program does not have the operators {unknown:?}"
    );
    let model = model.into_optimized()?;
    let options = RunOptions {
        executor: Some(Executor::SingleThread),
        ..RunOptions::default()
    };
    TypedSimplePlan::new_with_options(model, &options)
}

/// Operators of a graph that neither tract nor this project implements.
fn unknown_operators(model: &InferenceModel) -> BTreeSet<String> {
    let nodes = model.nodes().iter();
    nodes
        .filter_map(|node| {
            let name = node.op_as::<UnimplementedOp>()?.name();
            let inner = name.strip_prefix("Unimplemented(")?.strip_suffix(')')?;
            Some(inner.to_owned())
        })
        .collect()
}

fn shapes(model: &TypedModel, outlets: &[OutletId]) -> Vec<Vec<usize>> {
    let shape = |&outlet: &OutletId| {
        let fact = model.outlet_fact(outlet).ok()?;
        Some(
            fact.shape
                .iter()
                .map(|dim| dim.to_usize().unwrap_or(0))
                .collect(),
        )
    };
    outlets
        .iter()
        .map(|outlet| shape(outlet).unwrap_or_default())
        .collect()
}

/// The numbers of an output.
pub(crate) fn floats(tensor: &Tensor) -> TractResult<&[f32]> {
    tensor.try_as_plain_ram()?.as_slice::<f32>()
}
