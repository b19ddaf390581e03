//! `Linear`: a product with an 8-bit weight that is widened once, at load.
//!
//! Inputs: x `[.., K]` f32; q `[K, N]`, or `[N, K]` with attribute `transposed`,
//! u8 or i8; scale `[N]` f32; zero point `[N]` of the type of q. Output `[.., N]`
//! f32: x times the matrix of `scale * (q - zero_point)`.
//!
//! The matrix is kept as f16 and multiplied in f32. A value is a whole multiple
//! of its column's scale, 255 times at most, so rounding to the 11 bits of f16
//! moves it by an eighth of a step at most.

use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_hir::internal::*;

#[derive(Clone, Debug)]
struct Linear {
    transposed: bool,
}

pub(super) fn parse(
    _: &tract_onnx::model::ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let transposed = node.get_attr_opt::<i64>("transposed")?.unwrap_or(0) != 0;
    Ok((expand(Linear { transposed }), vec![]))
}

impl Expansion for Linear {
    fn name(&self) -> StaticName {
        "Linear".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_input_arity(inputs, 4)?;
        check_output_arity(outputs, 1)?;
        solver.equals(&inputs[0].datum_type, f32::datum_type())?;
        solver.equals(&outputs[0].datum_type, f32::datum_type())?;
        solver.given_2(
            &inputs[0].shape,
            &inputs[2].shape,
            move |solver, x, scale| {
                let mut shape = x;
                if let (Some(last), [width]) = (shape.last_mut(), &scale[..]) {
                    last.clone_from(width);
                }
                solver.equals(&outputs[0].shape, shape)
            },
        )
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let matrix = widen(
            &*constant(model, inputs[1])?,
            &*constant(model, inputs[2])?,
            &*constant(model, inputs[3])?,
            self.transposed,
        )?;
        let matrix = model.add_const(format!("{prefix}.weight"), matrix)?;
        let outer: String = ('a'..'k')
            .take(model.outlet_fact(inputs[0])?.rank() - 1)
            .collect();
        let weight_axes = if self.transposed { "nk" } else { "kn" };
        let axes = format!("{outer}k,{weight_axes}->{outer}n").parse()?;
        let product = EinSum::new(axes, f32::datum_type());
        model.wire_node(prefix, product, &[inputs[0], matrix])
    }
}

fn constant(model: &TypedModel, outlet: OutletId) -> TractResult<Arc<Tensor>> {
    let fact = model.outlet_fact(outlet)?;
    fact.konst
        .clone()
        .context("Linear needs its weight, scale and zero point as constants")
}

/// `scale * (q - zero_point)` as f16, in the layout of q.
fn widen(q: &Tensor, scale: &Tensor, zero_point: &Tensor, transposed: bool) -> TractResult<Tensor> {
    let &[rows, columns] = q.shape() else {
        bail!(
            "Linear needs a matrix, not a weight of shape {:?}",
            q.shape()
        );
    };
    let outputs = if transposed { rows } else { columns };
    ensure!(scale.len() == outputs && zero_point.len() == outputs);
    let zero_point = zero_point.cast_to::<f32>()?;
    let zero_point = zero_point.try_as_plain_ram()?.as_slice::<f32>()?;
    let scale = scale.try_as_plain_ram()?.as_slice::<f32>()?;
    let value = |q: f32, at: usize| {
        let output = if transposed {
            at / columns
        } else {
            at % columns
        };
        f16::from_f32(scale[output] * (q - zero_point[output]))
    };
    let plain = q.try_as_plain_ram()?;
    let widened: Vec<f16> = match q.datum_type() {
        DatumType::U8 => by_place(plain.as_slice::<u8>()?, value),
        DatumType::I8 => by_place(plain.as_slice::<i8>()?, value),
        other => bail!("Linear needs an 8-bit weight, not {other:?}"),
    };
    Tensor::from_shape(q.shape(), &widened)
}

fn by_place<Q: Copy + Into<f32>>(q: &[Q], value: impl Fn(f32, usize) -> f16) -> Vec<f16> {
    q.iter()
        .enumerate()
        .map(|(at, &q)| value(q.into(), at))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened(transposed: bool) -> Vec<f32> {
        let q = Tensor::from_shape(&[2, 2], &[130_u8, 10, 128, 12]).unwrap();
        let scale = tensor1(&[0.5_f32, 2.0]);
        let zero_point = tensor1(&[128_u8, 10]);
        let tensor = widen(&q, &scale, &zero_point, transposed).unwrap();
        let wide = tensor.cast_to::<f32>().unwrap();
        let plain = wide.try_as_plain_ram().unwrap();
        plain.as_slice::<f32>().unwrap().to_vec()
    }

    #[test]
    fn scale_and_zero_point_belong_to_outputs() {
        assert_eq!(widened(false), [1.0, 0.0, 0.0, 4.0]);
        assert_eq!(widened(true), [1.0, -59.0, 236.0, 4.0]);
    }

    #[test]
    fn a_weight_of_another_type_is_refused() {
        let scale = tensor1(&[1.0_f32]);
        let q = Tensor::from_shape(&[1, 1], &[1_i32]).unwrap();
        let error = widen(&q, &scale, &tensor1(&[0_i32]), false).unwrap_err();
        assert!(error.to_string().contains("8-bit"));
    }
}
