//! ONNX's `QLinearConv` on the whole-number kernels of `dsp`, in place of tract's.
//!
//! For sequences `[1, C, T]` and images `[1, C, H, W]` of u8 codes, with constant int8
//! weights of zero point 0, one scale for all outputs or one for each. Limits: no
//! groups, no `auto_pad`. Sums are exact, so every processor gives the same codes.

use std::{cell::RefCell, sync::Arc};

use earwitness_dsp::{
    convolve::{Coefficients, Convolution, Geometry, Scratch},
    dot::Kernel,
};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_hir::internal::*;

use super::quantized_add::{Codes, constant};

thread_local! {
    /// Kept between convolutions: fresh memory costs more than the smaller ones themselves.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// How the kernel moves, by axis, as far as the node says it.
#[derive(Clone, Debug)]
struct QLinearConv {
    strides: Option<Vec<usize>>,
    dilations: Option<Vec<usize>>,
    /// Before all axes, then after them.
    pads: Option<Vec<usize>>,
}

pub(super) fn parse(
    _: &tract_onnx::model::ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let group = node.get_attr_opt::<i64>("group")?.unwrap_or(1);
    ensure!(group == 1, "QLinearConv in groups is not supported");
    let auto_pad = node.get_attr_opt::<String>("auto_pad")?;
    ensure!(
        auto_pad.is_none_or(|mode| mode == "NOTSET"),
        "QLinearConv takes its padding from `pads` only"
    );
    let convolution = QLinearConv {
        strides: node.get_attr_opt_vec("strides")?,
        dilations: node.get_attr_opt_vec("dilations")?,
        pads: node.get_attr_opt_vec("pads")?,
    };
    Ok((expand(convolution), vec![]))
}

impl QLinearConv {
    /// For a weight `[O, C, K]` or `[O, C, K, K]`; a sequence is an image of one row.
    fn geometry(&self, weight: &[usize]) -> TractResult<Geometry> {
        let (&[outputs, channels], kernel) = weight
            .split_first_chunk()
            .context("a weight has outputs and channels")?;
        ensure!(
            matches!(kernel.len(), 1 | 2),
            "QLinearConv works on sequences and images"
        );
        let axes = |values: &[usize], single| -> TractResult<[usize; 2]> {
            ensure!(
                values.len() == kernel.len(),
                "QLinearConv has one value of an attribute for each axis"
            );
            Ok(match *values {
                [y, x] => [y, x],
                _ => [single, values[0]],
            })
        };
        let ones = vec![1; kernel.len()];
        let pads = self.pads.clone().unwrap_or(vec![0; 2 * kernel.len()]);
        let (before, after) = pads
            .split_at_checked(kernel.len())
            .context("two paddings for each axis")?;
        let (taps, stride) = (
            axes(kernel, 1)?,
            axes(self.strides.as_ref().unwrap_or(&ones), 1)?,
        );
        ensure!(
            !taps.contains(&0) && !stride.contains(&0),
            "kernels and strides are positive"
        );
        Ok(Geometry {
            channels,
            outputs,
            kernel: taps,
            stride,
            dilation: axes(self.dilations.as_ref().unwrap_or(&ones), 1)?,
            before: axes(before, 0)?,
            after: axes(after, 0)?,
        })
    }
}

impl Expansion for QLinearConv {
    fn name(&self) -> StaticName {
        "QLinearConv".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        ensure!(
            matches!(inputs.len(), 8 | 9),
            "QLinearConv takes 8 or 9 inputs"
        );
        check_output_arity(outputs, 1)?;
        solver.equals(&inputs[0].datum_type, u8::datum_type())?;
        solver.equals(&outputs[0].datum_type, u8::datum_type())?;
        solver.given_2(
            &inputs[0].shape,
            &inputs[3].shape,
            move |solver, image, weight| {
                let weight: TVec<usize> = weight
                    .iter()
                    .map(|size| size.to_usize())
                    .collect::<Result<_, _>>()?;
                let geometry = self.geometry(&weight)?;
                solver.equals(&outputs[0].shape, output_shape(&geometry, &image)?)
            },
        )
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let weight = constant(model, inputs[3])?;
        let geometry = self.geometry(weight.shape())?;
        let image = Codes::of(model, [inputs[1], inputs[2]])?;
        let output = Codes::of(model, [inputs[6], inputs[7]])?;
        let steps = constant(model, inputs[4])?;
        let steps = steps.try_as_plain_ram()?.as_slice::<f32>()?;
        ensure!(
            [1, geometry.outputs].contains(&steps.len()),
            "a scale of the weight for all outputs or for each"
        );
        let zeros = constant(model, inputs[5])?;
        ensure!(
            zeros
                .try_as_plain_ram()?
                .as_slice::<i8>()?
                .iter()
                .all(|&zero| zero == 0),
            "QLinearConv takes weights around zero only"
        );
        let bias = match inputs.get(8) {
            Some(&bias) => constant(model, bias)?
                .try_as_plain_ram()?
                .as_slice::<i32>()?
                .to_vec(),
            None => vec![0; geometry.outputs],
        };
        ensure!(bias.len() == geometry.outputs, "one bias for each output");
        let scale: Vec<f32> = (0..geometry.outputs)
            .map(|channel| image.scale * steps[channel % steps.len()] / output.scale)
            .collect();
        let coefficients = Coefficients {
            weights: weight.try_as_plain_ram()?.as_slice()?,
            bias: &bias,
            scale: &scale,
            image_zero: image.zero,
            output_zero: output.zero,
        };
        let convolution = Convolution::new(Kernel::best(), geometry, &coefficients);
        model.wire_node(prefix, Packed(Arc::new(convolution)), &inputs[..1])
    }
}

/// `[1, O, ..]` for an image `[1, C, ..]`.
fn output_shape(geometry: &Geometry, image: &[TDim]) -> TractResult<TVec<TDim>> {
    let (batch, sizes) = image
        .split_first_chunk::<2>()
        .context("an image has a batch and channels")?;
    ensure!(
        matches!(sizes.len(), 1 | 2),
        "QLinearConv works on sequences and images"
    );
    let mut shape = tvec!(batch[0].clone(), geometry.outputs.to_dim());
    for (size, axis) in sizes.iter().zip(2 - sizes.len()..) {
        let window = geometry.dilation[axis] * (geometry.kernel[axis] - 1) + 1;
        let border = (geometry.before[axis] + geometry.after[axis]) as i64 - window as i64;
        shape.push((size.clone() + border) / geometry.stride[axis] + 1);
    }
    Ok(shape)
}

/// A convolution with its weights packed for this processor.
#[derive(Clone, Debug)]
struct Packed(Arc<Convolution>);

impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Packed {}

impl Op for Packed {
    fn name(&self) -> StaticName {
        "QLinearConv".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Packed {
    op_out_of_plan!();

    fn eval(&self, _: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let geometry = self.0.geometry();
        let shape = inputs[0].shape();
        let size = match *shape {
            [1, channels, width] if channels == geometry.channels => [1, width],
            [1, channels, height, width] if channels == geometry.channels => [height, width],
            _ => bail!(
                "QLinearConv takes one image of {} channels, not {shape:?}",
                geometry.channels
            ),
        };
        let output = geometry
            .output(size)
            .context("the image is smaller than the kernel")?;
        let mut codes =
            Tensor::zero::<u8>(&[&[1, geometry.outputs], &output[4 - shape.len()..]].concat())?;
        SCRATCH.with_borrow_mut(|scratch| {
            let image = inputs[0].try_as_plain_ram()?.as_slice()?;
            self.0.apply(
                image,
                size,
                scratch,
                codes.try_as_plain_ram_mut()?.as_slice_mut()?,
            );
            TractResult::Ok(())
        })?;
        Ok(tvec!(codes.into()))
    }
}

impl TypedOp for Packed {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let shape = output_shape(self.0.geometry(), &inputs[0].shape)?;
        Ok(tvec!(u8::fact(&shape)))
    }

    as_op!();
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: QLinearConv = QLinearConv {
        strides: None,
        dilations: None,
        pads: None,
    };

    #[test]
    fn a_sequence_is_an_image_of_one_row() {
        let convolution = QLinearConv {
            dilations: Some(vec![3]),
            pads: Some(vec![3, 2]),
            ..PLAIN
        };
        let geometry = convolution.geometry(&[8, 4, 3]).unwrap();
        assert_eq!((geometry.kernel, geometry.dilation), ([1, 3], [1, 3]));
        assert_eq!((geometry.before, geometry.after), ([0, 3], [0, 2]));
        assert_eq!(geometry.output([1, 100]), Some([1, 99]));
        let shape = [1, 4, 100].map(|size: usize| size.to_dim());
        let output = [1, 8, 99].map(|size: usize| size.to_dim());
        assert_eq!(output_shape(&geometry, &shape).unwrap()[..], output);
    }

    #[test]
    fn attributes_that_do_not_fit_the_weight_are_refused() {
        for (strides, pads) in [(Some(vec![1, 1, 1]), None), (None, Some(vec![1, 1, 1]))] {
            let convolution = QLinearConv {
                strides,
                pads,
                ..PLAIN
            };
            assert!(convolution.geometry(&[8, 4, 3, 3]).is_err());
        }
        assert!(PLAIN.geometry(&[8, 4]).is_err());
        assert!(PLAIN.geometry(&[8]).is_err());
    }
}
