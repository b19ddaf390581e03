"""The student as an ONNX graph: in float, or with its convolutions as `QLinearConv`.

A normalisation before a ReLU is folded into its convolution, and the ReLU into the
range of an unsigned result. What works on a single column (squeeze, excite,
context, last layer) keeps float arithmetic over 8-bit weights, since integers would
gain nothing there; means, softmax and roots stay in float too. Weights have one scale
an output, for those of the teacher's layers are far apart. The additions around the
teacher's blocks are `QLinearAdd`, which onnxruntime defines, as ONNX has none.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import TensorProto
from recipes.onnx_graph import Graph
from torch import nn

from .front import Convolution, Front, Residual
from .model import FLOOR, Block, Ecapa, Pooling, Tdnn

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Range:
    """What 8 bits stand for: value = scale * (code - zero)."""

    scale: float
    zero: int

    @staticmethod
    def of(low: float, high: float) -> "Range":
        """The range from `low` to `high`, with zero in it."""
        low, high = min(low, 0.0), max(high, 1e-6)
        scale = (high - low) / 255
        return Range(scale, round(-low / scale))


@dataclass
class Value:
    """A tensor of the graph: as float, as codes in a range, or as both once both were asked for."""

    floats: str | None = None
    codes: str | None = None
    range: Range | None = None


class Writer:
    """Adds layers to a graph.

    A point is a place that has a range; several tensors that are joined share one.
    Without ranges the graph is float, and `watched` tells which tensors pass which point.
    """

    def __init__(self, ranges: dict[str, Range] | None):
        self.graph = Graph()
        self.ranges = ranges
        self.watched: list[tuple[str, str]] = []

    def floats(self, value: Value) -> str:
        """The value as float."""
        if value.floats is None:
            value.floats = self.graph.op("DequantizeLinear", [value.codes, *self._constants(value.range)])
        return value.floats

    def at(self, value: Value, point: str) -> str:
        """The value as a convolution takes it: codes in the range of `point`, or float if there are no ranges."""
        if self.ranges is None:
            self.watched.append((point, value.floats))
            return value.floats
        wanted = self.ranges[point]
        if value.range != wanted:
            value.codes = self.graph.op("QuantizeLinear", [self.floats(value), *self._constants(wanted)])
            value.range = wanted
        return value.codes

    def tdnn(self, x: Value, layer: Tdnn, enters: str, leaves: str) -> Value:
        """Convolution, normalisation and ReLU."""
        if layer.norm_first or isinstance(layer.norm, nn.Identity):
            return self.convolution(x, layer.conv, enters, leaves, norm=layer.norm, relu=True)
        y = self.convolution(x, layer.conv, enters, leaves, relu=True)
        return Value(self.affine(self.floats(y), layer.norm))

    def convolution(
        self, x: Value, conv: nn.Conv1d, enters: str, leaves: str, *, norm: nn.Module | None = None, relu: bool = False
    ) -> Value:
        """A convolution over time, from the point `enters` to the point `leaves`."""
        scale, shift = affine(norm)
        weight = array(conv.weight) * scale[:, None, None]
        bias = scale * array(conv.bias) + shift
        source, form = self._padded(self.at(x, enters), conv)
        return self._convolved(source, weight, bias, enters, leaves, relu, form)

    def image_convolution(self, x: Value, conv: Convolution, enters: str, leaves: str, *, relu: bool) -> Value:
        """A convolution over bands and time."""
        weight = array(conv.weight)
        kernel, stride = weight.shape[2], conv.stride
        form = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        return self._convolved(self.at(x, enters), weight, array(conv.bias), enters, leaves, relu, form)

    def _convolved(self, source: str, weight, bias, enters: str, leaves: str, relu: bool, form: dict) -> Value:
        if self.ranges is None:
            y = self.graph.op("Conv", [source, self.graph.constant(weight), self.graph.constant(bias)], **form)
            y = self.graph.op("Relu", [y]) if relu else y
            self.watched.append((leaves, y))
            return Value(y)
        before, after = self.ranges[enters], self.ranges[leaves]
        codes, steps = quantized(weight, axes=tuple(range(1, weight.ndim)))
        steps = steps.reshape(-1)
        bias = np.rint(bias / (steps * before.scale)).astype(np.int32)
        weights = [self.graph.constant(part) for part in (codes, steps, np.zeros(len(steps), np.int8))]
        inputs = [source, *self._constants(before), *weights, *self._constants(after), self.graph.constant(bias)]
        return Value(codes=self.graph.op("QLinearConv", inputs, **form), range=after)

    def added(self, x: Value, y: Value, leaves: str) -> Value:
        """The sum, where it is positive."""
        if self.ranges is None:
            total = self.graph.op("Relu", [self.graph.op("Add", [x.floats, y.floats])])
            self.watched.append((leaves, total))
            return Value(total)
        after = self.ranges[leaves]
        parts = [x.codes, *self._constants(x.range), y.codes, *self._constants(y.range), *self._constants(after)]
        return Value(codes=self.graph.op("QLinearAdd", parts, MICROSOFT), range=after)

    def column(self, x: str, conv: nn.Conv1d) -> str:
        """A 1x1 convolution of one column [1, C, 1]."""
        weight = array(conv.weight)
        bias = array(conv.bias) if conv.bias is not None else np.zeros(len(weight), np.float32)
        if self.ranges is None:
            kernel = self.graph.constant(weight)
        else:
            codes, steps = quantized(weight, axes=(1, 2))
            codes = self.graph.op("Cast", [self.graph.constant(codes)], to=TensorProto.FLOAT)
            kernel = self.graph.op("Mul", [codes, self.graph.constant(steps)])
        return self.graph.op("Conv", [x, kernel, self.graph.constant(bias)])

    def affine(self, x: str, norm: nn.BatchNorm1d) -> str:
        """A normalisation that cannot be folded into the layer before it."""
        scale, shift = (self.graph.constant(part[:, None]) for part in affine(norm))
        return self.graph.op("Add", [self.graph.op("Mul", [x, scale]), shift])

    def concat(self, values: list[Value], point: str) -> Value:
        """Channels of several values, one after the other, in the range of a point."""
        joined = self.graph.op("Concat", [self.at(value, point) for value in values], axis=1)
        return Value(joined) if self.ranges is None else Value(codes=joined, range=self.ranges[point])

    def split(self, value: Value, parts: int, channels: int) -> list[Value]:
        """The channels in equal parts."""
        width = channels // parts
        cut = lambda name, i: name and self.graph.slice(name, i * width, (i + 1) * width, axis=1)
        whole = Value(codes=value.codes, range=value.range) if value.codes else value
        return [Value(cut(whole.floats, i), cut(whole.codes, i), whole.range) for i in range(parts)]

    def mean(self, x: str) -> str:
        """Over time."""
        return self.graph.op("ReduceMean", [x, self.graph.integers(2)])

    def _padded(self, x: str, conv: nn.Conv1d) -> tuple[str, dict]:
        form = {"kernel_shape": conv.kernel_size, "strides": conv.stride, "dilations": conv.dilation}
        (padding,) = conv.padding
        if conv.padding_mode == "zeros" or not padding:
            return x, {**form, "pads": [padding, padding]}
        pads = self.graph.integers(0, 0, padding, 0, 0, padding)
        return self.graph.op("Pad", [x, pads], mode=conv.padding_mode), {**form, "pads": [0, 0]}

    def _constants(self, range: Range) -> tuple[str, str]:
        return self.graph.constant(np.float32(range.scale)), self.graph.constant(np.uint8(range.zero))


def write(student: Ecapa, path: Path, ranges: dict[str, Range] | None = None) -> list[tuple[str, str]]:
    """Writes fbank [1, T, mels] -> embedding [1, D], not normalised; gives the watched tensors of a float graph."""
    writer = Writer(ranges)
    graph, shape = writer.graph, student.shape
    x = Value(graph.transpose("fbank", 0, 2, 1))
    x = front(writer, x, student.front, shape.mels) if student.front else x
    x = writer.tdnn(x, student.enter, "heard" if student.front else "features", "entered")
    outputs = []
    for index, layers in enumerate(student.blocks):
        x = block(writer, x, layers, f"block{index}", shape.channels)
        outputs.append(x)
    joined = writer.concat(outputs, "joined")
    x = writer.tdnn(joined, student.aggregate, "joined", "aggregated")
    # Folded into the last layer, it would spread the weights too far apart for 8 bits.
    pooled = writer.affine(pooling(writer, x, student.pool), student.norm)
    embedding = writer.column(pooled, student.last)
    graph.save(
        path,
        [("fbank", np.float32, [1, "T", shape.mels])],
        [(graph.reshape(embedding, 1, shape.embedding), "embedding", [1, shape.embedding])],
    )
    return writer.watched


def front(writer: Writer, x: Value, layers: Front, mels: int) -> Value:
    """The teacher's first layers: [1, mels, T] -> [1, channels * bands, T / stride]."""
    image = Value(writer.graph.reshape(x.floats, 1, 1, mels, -1))
    image = writer.image_convolution(image, layers.conv1, "features", "front", relu=True)
    entered = "front"
    for name, block in zip(layers.names, layers.blocks):
        left = "heard" if name == layers.names[-1] else name
        image = residual(writer, image, block, entered, name, left)
        entered = left
    flat = lambda tensor: tensor and writer.graph.reshape(tensor, 1, layers.outputs, -1)
    return Value(flat(image.floats), flat(image.codes), image.range)


def residual(writer: Writer, x: Value, layers: Residual, enters: str, name: str, leaves: str) -> Value:
    """Two convolutions, around which the input goes."""
    y = writer.image_convolution(x, layers.conv1, enters, f"{name}.inner", relu=True)
    y = writer.image_convolution(y, layers.conv2, f"{name}.inner", f"{name}.outer", relu=False)
    if layers.shortcut is not None:
        x = writer.image_convolution(x, layers.shortcut, enters, f"{name}.shortcut", relu=False)
    return writer.added(x, y, leaves)


def block(writer: Writer, x: Value, layers: Block, name: str, channels: int) -> Value:
    """Res2Net, squeeze and excitation, shortcut."""
    graph, parts = writer.graph, f"{name}.parts"
    first, second, *others = writer.split(writer.tdnn(x, layers.enter, name, parts), len(layers.parts) + 1, channels)
    done = [first, writer.tdnn(second, layers.parts[0], parts, parts)]
    for index, (layer, inputs) in enumerate(zip(layers.parts[1:], others)):
        inputs = Value(graph.op("Add", [writer.floats(inputs), writer.floats(done[-1])]))
        done.append(writer.tdnn(inputs, layer, f"{parts}.sum{index}", parts))
    y = writer.floats(writer.tdnn(writer.concat(done, parts), layers.leave, parts, f"{name}.left"))
    squeezed = graph.op("Relu", [writer.column(writer.mean(y), layers.squeeze)])
    gate = graph.op("Sigmoid", [writer.column(squeezed, layers.excite)])
    return Value(graph.op("Add", [writer.floats(x), graph.op("Mul", [y, gate])]))


def pooling(writer: Writer, x: Value, layers: Pooling) -> str:
    """Attentive statistics: [1, C, T] -> [1, 2C, 1]."""
    graph, frames = writer.graph, writer.floats(x)
    context = writer.column(statistics(writer, frames, writer.mean), layers.context)
    hidden = writer.floats(writer.convolution(x, layers.frames, "aggregated", "attention"))
    hidden = graph.op("Add", [hidden, context])
    if isinstance(layers.norm, nn.Sequential):
        hidden = writer.affine(graph.op("Relu", [hidden]), layers.norm[1])
    hidden = Value(graph.op("Tanh", [hidden]))
    scores = writer.floats(writer.convolution(hidden, layers.scores, "tanh", "scores"))
    weights = graph.op("Softmax", [scores], axis=2)
    total = lambda y: graph.op("ReduceSum", [graph.op("Mul", [weights, y]), graph.integers(2)])
    return statistics(writer, frames, total)


def statistics(writer: Writer, x: str, mean) -> str:
    """Mean and deviation over time, by a way to take a mean."""
    graph = writer.graph
    centre = mean(x)
    apart = graph.op("Sub", [x, centre])
    variance = graph.op("Max", [mean(graph.op("Mul", [apart, apart])), graph.constant(np.float32(FLOOR))])
    return graph.op("Concat", [centre, graph.op("Sqrt", [variance])], axis=1)


def quantized(weight: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """int8 codes, and their step shared along the axes."""
    steps = np.maximum(np.abs(weight).max(axis=axes, keepdims=True), 1e-8) / 127
    return np.rint(weight / steps).astype(np.int8), steps.astype(np.float32)


def affine(norm: nn.Module | None) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift of a normalisation with its running statistics; of none, 1 and 0."""
    if not isinstance(norm, nn.BatchNorm1d):
        return np.ones(1, np.float32), np.zeros(1, np.float32)
    scale = array(norm.weight) / np.sqrt(array(norm.running_var) + norm.eps)
    return scale, array(norm.bias) - array(norm.running_mean) * scale


def array(tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.float32)
