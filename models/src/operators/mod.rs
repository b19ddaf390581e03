//! Operators of our own in ONNX graphs (domain `earwitness`).
//!
//! The recipes write them where standard operators would cost memory or time:
//! tract folds no constant that grows beyond 4 MiB, so 8-bit weights would be
//! widened again at every run, and its products repack a whole cache for each
//! new token. Standard operators on 8-bit codes are here too, in place of tract's.

mod convolution;
mod linear;
mod quantized_add;
mod quantized_convolution;
mod self_attention;
mod step_attention;

use tract_onnx::Onnx;

/// An ONNX parser that knows the project's own operators too.
pub(crate) fn onnx() -> Onnx {
    let mut onnx = tract_onnx::onnx();
    onnx.op_register.insert("Convolution", convolution::parse);
    onnx.op_register.insert("Linear", linear::parse);
    onnx.op_register
        .insert("SelfAttention", self_attention::parse);
    onnx.op_register
        .insert("StepAttention", step_attention::parse);
    onnx.op_register.insert("QLinearAdd", quantized_add::parse);
    onnx.op_register
        .insert("QLinearConv", quantized_convolution::parse);
    onnx
}
