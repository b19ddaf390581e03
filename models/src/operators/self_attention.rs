//! `SelfAttention`: unmasked attention over a long sequence, one head at a time.
//!
//! Inputs: query, already divided by the square root of D, key and value, each
//! `[1, T, H*D]` f32. Attribute `heads` is H. Output `[1, T, H*D]`.
//!
//! Written with standard operators, the scores of all heads exist at once, and
//! their softmax beside them: 100 MB for half a minute of speech. Here it is one
//! head's share. The products are tract's own.

use std::sync::Arc;

use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::nn::{Softmax, SoftmaxKind};
use tract_onnx::tract_hir::internal::*;

#[derive(Clone, Debug)]
struct Parsed {
    heads: usize,
}

pub(super) fn parse(
    _: &tract_onnx::model::ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let heads = usize::try_from(node.get_attr::<i64>("heads")?)?;
    Ok((expand(Parsed { heads }), vec![]))
}

impl Expansion for Parsed {
    fn name(&self) -> StaticName {
        "SelfAttention".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_input_arity(inputs, 3)?;
        check_output_arity(outputs, 1)?;
        for input in inputs {
            solver.equals(&input.datum_type, f32::datum_type())?;
            solver.equals(&input.shape, &inputs[0].shape)?;
        }
        solver.equals(&outputs[0].datum_type, f32::datum_type())?;
        solver.equals(&outputs[0].shape, &inputs[0].shape)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let width = model.outlet_fact(inputs[0])?.shape[2].to_usize()?;
        ensure!(self.heads > 0 && width % self.heads == 0);
        let operator = SelfAttention {
            width: width / self.heads,
            one_head: one_head(width / self.heads)?,
        };
        model.wire_node(prefix, operator, inputs)
    }
}

/// Attention of one head: query, key, value `[T, width]` -> `[T, width]`.
fn one_head(width: usize) -> TractResult<Arc<TypedSimplePlan>> {
    let mut model = TypedModel::default();
    let fact = f32::fact(dims!(model.symbols.sym("T"), width));
    let query = model.add_source("query", fact.clone())?;
    let key = model.add_source("key", fact.clone())?;
    let value = model.add_source("value", fact)?;
    let product = |axes: &str| Ok::<_, TractError>(EinSum::new(axes.parse()?, f32::datum_type()));
    let scores = model.wire_node("scores", product("td,sd->ts")?, &[query, key])?[0];
    let softmax = Softmax::new(tvec!(1), None, SoftmaxKind::Softmax);
    let weights = model.wire_node("weights", softmax, &[scores])?[0];
    let mixed = model.wire_node("mixed", product("ts,sd->td")?, &[weights, value])?;
    model.select_output_outlets(&mixed)?;
    TypedSimplePlan::new_with_options(model.into_optimized()?, &Default::default())
}

#[derive(Clone, Debug)]
struct SelfAttention {
    width: usize,
    one_head: Arc<TypedSimplePlan>,
}

/// The plan follows from the width.
impl PartialEq for SelfAttention {
    fn eq(&self, other: &Self) -> bool {
        self.width == other.width
    }
}

impl Eq for SelfAttention {}

impl Op for SelfAttention {
    fn name(&self) -> StaticName {
        "SelfAttention".into()
    }

    op_as_typed_op!();
}

impl EvalOp for SelfAttention {
    op_out_of_plan!();

    fn eval(&self, _: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let row = inputs[0].shape()[2];
        let mut output = vec![0.0; inputs[0].len()];
        for column in (0..row).step_by(self.width) {
            let head = inputs
                .iter()
                .map(|input| self.columns(input, column))
                .collect::<TractResult<_>>()?;
            let mixed = self.one_head.run(head)?;
            let mixed = mixed[0].try_as_plain_ram()?.as_slice::<f32>()?;
            let rows = output.chunks_exact_mut(row);
            for (row, mixed) in rows.zip(mixed.chunks_exact(self.width)) {
                row[column..column + self.width].copy_from_slice(mixed);
            }
        }
        Ok(tvec!(
            Tensor::from_shape(inputs[0].shape(), &output)?.into()
        ))
    }
}

impl SelfAttention {
    /// The head that begins at `column` of a `[1, T, H*D]`: `[T, D]`.
    fn columns(&self, input: &Tensor, column: usize) -> TractResult<TValue> {
        let rows = input
            .try_as_plain_ram()?
            .as_slice::<f32>()?
            .chunks_exact(input.shape()[2]);
        let head: Vec<f32> = rows
            .flat_map(|row| &row[column..column + self.width])
            .copied()
            .collect();
        Ok(Tensor::from_shape(&[head.len() / self.width, self.width], &head)?.into())
    }
}

impl TypedOp for SelfAttention {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].without_value()))
    }

    as_op!();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition for one head, query by query.
    fn slow(query: &[[f32; 2]], key: &[[f32; 2]], value: &[[f32; 2]]) -> Vec<[f32; 2]> {
        let mix = |q: &[f32; 2]| {
            let weights: Vec<f32> = key
                .iter()
                .map(|k| (q[0] * k[0] + q[1] * k[1]).exp())
                .collect();
            let total: f32 = weights.iter().sum();
            let sum = |i: usize| {
                value
                    .iter()
                    .zip(&weights)
                    .map(|(v, w)| v[i] * w)
                    .sum::<f32>()
            };
            [sum(0) / total, sum(1) / total]
        };
        query.iter().map(mix).collect()
    }

    #[test]
    fn equals_the_definition_for_each_head() {
        let rows = |seed: f32| -> Vec<[f32; 4]> {
            (0..5)
                .map(|t| [0, 1, 2, 3].map(|i| (seed + 1.7 * t as f32 + 0.9 * i as f32).sin()))
                .collect()
        };
        let (query, key, value) = (rows(0.0), rows(1.0), rows(2.0));
        let tensor = |rows: &[[f32; 4]]| {
            Tensor::from_shape(&[1, 5, 4], rows.as_flattened())
                .unwrap()
                .into()
        };
        let operator = SelfAttention {
            width: 2,
            one_head: one_head(2).unwrap(),
        };
        let inputs = tvec!(tensor(&query), tensor(&key), tensor(&value));
        let output = operator.eval(&EvalContext::out_of_plan(), inputs).unwrap();
        let output = output[0]
            .try_as_plain_ram()
            .unwrap()
            .as_slice::<f32>()
            .unwrap();
        for head in 0..2 {
            let pick = |rows: &[[f32; 4]]| -> Vec<[f32; 2]> {
                rows.iter()
                    .map(|row| [row[2 * head], row[2 * head + 1]])
                    .collect()
            };
            let expected = slow(&pick(&query), &pick(&key), &pick(&value));
            for (row, expected) in output.chunks_exact(4).zip(expected) {
                assert!((row[2 * head] - expected[0]).abs() < 1e-5);
                assert!((row[2 * head + 1] - expected[1]).abs() < 1e-5);
            }
        }
    }
}
