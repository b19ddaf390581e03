//! onnxruntime's `QLinearAdd`: the sum of two tensors of u8 codes, as codes again.
//!
//! Inputs: a, its scale and zero point; b, its scale and zero point; scale and zero
//! point of the sum. Both tensors have one shape, scales and zero points are constants.

use earwitness_dsp::{
    convolve::{Addition, add},
    dot::Kernel,
};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_hir::internal::*;

/// What u8 codes stand for: `scale * (code - zero)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    pub(super) scale: f32,
    pub(super) zero: u8,
}

impl Codes {
    /// From a node's constant inputs: scale, and zero point.
    pub(super) fn of(model: &TypedModel, [scale, zero]: [OutletId; 2]) -> TractResult<Self> {
        let (scale, zero) = (constant(model, scale)?, constant(model, zero)?);
        ensure!(
            scale.len() == 1 && zero.len() == 1,
            "codes have one scale and one zero point"
        );
        let scale = scale.try_as_plain_ram()?.as_slice::<f32>()?[0];
        ensure!(
            scale.is_normal() && scale > 0.0,
            "a scale is positive, not {scale}"
        );
        let zero = zero.try_as_plain_ram()?.as_slice::<u8>()?[0];
        Ok(Self { scale, zero })
    }
}

/// The constant that an input is.
pub(super) fn constant(model: &TypedModel, outlet: OutletId) -> TractResult<Arc<Tensor>> {
    let fact = model.outlet_fact(outlet)?;
    fact.konst
        .clone()
        .context("scales, zero points and weights have to be constants")
}

pub(super) fn parse(
    _: &tract_onnx::model::ParsingContext,
    _: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    Ok((expand(QLinearAdd), vec![]))
}

/// The node as it is read, its constants not known yet.
#[derive(Clone, Debug)]
struct QLinearAdd;

impl Expansion for QLinearAdd {
    fn name(&self) -> StaticName {
        "QLinearAdd".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_input_arity(inputs, 8)?;
        check_output_arity(outputs, 1)?;
        for tensor in [&inputs[0], &inputs[3], &outputs[0]] {
            solver.equals(&tensor.datum_type, u8::datum_type())?;
        }
        solver.equals(&inputs[3].shape, &inputs[0].shape)?;
        solver.equals(&outputs[0].shape, &inputs[0].shape)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let parts = [
            Codes::of(model, [inputs[1], inputs[2]])?,
            Codes::of(model, [inputs[4], inputs[5]])?,
        ];
        let sum = Codes::of(model, [inputs[6], inputs[7]])?;
        let [a, b] = parts.map(|part| part.scale / sum.scale);
        let nothing =
            f32::from(sum.zero) - a * f32::from(parts[0].zero) - b * f32::from(parts[1].zero);
        let add = Add {
            factors: [a, b].map(f32::to_bits),
            nothing: nothing.to_bits(),
        };
        model.wire_node(prefix, add, &[inputs[0], inputs[3]])
    }
}

/// `factors[0] * a + factors[1] * b + nothing`, rounded to even and kept within the
/// codes; numbers as their bits, which can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Add {
    factors: [u32; 2],
    nothing: u32,
}

impl Op for Add {
    fn name(&self) -> StaticName {
        "QLinearAdd".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Add {
    op_out_of_plan!();

    fn eval(&self, _: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        ensure!(
            inputs[0].shape() == inputs[1].shape(),
            "codes that are added are of one shape"
        );
        let codes = |i: usize| inputs[i].try_as_plain_ram()?.as_slice::<u8>();
        let addition = Addition {
            factors: self.factors.map(f32::from_bits),
            nothing: f32::from_bits(self.nothing),
        };
        let mut sums = Tensor::zero::<u8>(inputs[0].shape())?;
        let into = &mut sums.try_as_plain_ram_mut()?;
        add(
            Kernel::best(),
            addition,
            codes(0)?,
            codes(1)?,
            into.as_slice_mut()?,
        );
        Ok(tvec!(sums.into()))
    }
}

impl TypedOp for Add {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(u8::fact(inputs[0].shape.clone())))
    }

    as_op!();
}
