"""A small writer of ONNX graphs that are laid out for the runtime.

Four operators are the project's own, in the domain `earwitness`; the runtime
implements and defines them in `models/src/operators`:

- `Convolution`: a convolution with bias, shortcut and ReLU, channels innermost.
- `Linear`: a matrix product with an 8-bit weight that is dequantized once, when
  the model is loaded.
- `SelfAttention`: attention over a long sequence, one head at a time.
- `StepAttention`: attention of one query over a cache that the caller owns.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "earwitness"
OPSET = 20
IR_VERSION = 9


@dataclass(frozen=True)
class Weight:
    """An 8-bit matrix [inputs, outputs]: value = scale * (q - zero_point).

    `scale` and `zero_point` hold one entry for each output.
    """

    q: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray

    @staticmethod
    def of(q: np.ndarray, scale, zero_point=0) -> "Weight":
        """Spreads scalars over the outputs."""
        spread = lambda value, dtype: np.broadcast_to(np.asarray(value, dtype).reshape(-1), (q.shape[1],))
        return Weight(q, spread(scale, np.float32), spread(zero_point, q.dtype))

    @staticmethod
    def beside(weights: list["Weight"]) -> "Weight":
        """One matrix for several that read the same input, so that one product serves all."""
        join = lambda part: np.concatenate([getattr(weight, part) for weight in weights], axis=-1)
        return Weight(join("q"), join("scale"), join("zero_point"))

    def scaled(self, factor: float) -> "Weight":
        """The same matrix times `factor`; costs no precision."""
        return Weight(self.q, self.scale * np.float32(factor), self.zero_point)


class Graph:
    """Collects nodes and constants; every method that adds a node returns its output's name."""

    def __init__(self):
        self.nodes = []
        self.initializers = []
        self._names = {}

    def op(self, kind: str, inputs: list[str], domain: str = "", **attributes) -> str:
        """Adds a node with one output."""
        return self.ops(1, kind, inputs, domain, **attributes)[0]

    def ops(self, count: int, kind: str, inputs: list[str], domain: str = "", **attributes) -> list[str]:
        """Adds a node with several outputs."""
        name = f"{kind}_{len(self.nodes)}"
        outputs = [name] + [f"{name}_{i}" for i in range(1, count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs

    def constant(self, value) -> str:
        """Adds a constant, or finds it among those there are."""
        # `ascontiguousarray` would make a vector of a scalar.
        value = np.asarray(value, order="C")
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._names:
            self._names[key] = f"constant_{len(self._names)}"
            self.initializers.append(numpy_helper.from_array(value, self._names[key]))
        return self._names[key]

    def integers(self, *values: int) -> str:
        """A constant list of integers: axes, shapes, bounds."""
        return self.constant(np.array(values, np.int64))

    def linear(self, x: str, weight: Weight, bias=None) -> str:
        """x @ weight (+ bias)."""
        return self._linear(x, weight, weight.q, bias, transposed=0)

    def linear_transposed(self, x: str, weight: Weight, bias=None) -> str:
        """The same product with the weight stored [outputs, inputs], to share it with a table of rows."""
        return self._linear(x, weight, weight.q.T, bias, transposed=1)

    def _linear(self, x, weight, stored, bias, transposed):
        inputs = [x, self.constant(stored), self.constant(weight.scale), self.constant(weight.zero_point)]
        y = self.op("Linear", inputs, DOMAIN, transposed=transposed)
        return y if bias is None else self.op("Add", [y, self.constant(bias)])

    def convolution(self, x: str, weight, scale, offset, bias, shortcut: str = "", *, stride: int, relu: int) -> str:
        """relu(x * (scale * weight + offset) + bias + shortcut), [H, W, C] -> [H, W, outputs]."""
        inputs = [x, *map(self.constant, (weight, scale, offset, bias))] + ([shortcut] if shortcut else [])
        return self.op("Convolution", inputs, DOMAIN, stride=stride, relu=relu)

    def layer_norm(self, x: str, scale, bias=None, epsilon: float = 1e-5) -> str:
        """Layer normalisation over the last axis."""
        inputs = [x, self.constant(scale)] + ([] if bias is None else [self.constant(bias)])
        return self.op("LayerNormalization", inputs, axis=-1, epsilon=epsilon)

    def reshape(self, x: str, *shape: int) -> str:
        """0 keeps a dimension, -1 infers one."""
        return self.op("Reshape", [x, self.integers(*shape)])

    def transpose(self, x: str, *axes: int) -> str:
        """Permutes the axes."""
        return self.op("Transpose", [x], perm=axes)

    def slice(self, x: str, begin: int, end: int, axis: int) -> str:
        """x[begin:end] along one axis."""
        return self.op("Slice", [x, self.integers(begin), self.integers(end), self.integers(axis)])

    def split_heads(self, x: str, heads: int, width: int) -> str:
        """[1, T, heads*width] -> [1, heads, T, width]."""
        return self.transpose(self.reshape(x, 0, 0, heads, width), 0, 2, 1, 3)

    def attention(self, query: str, key: str, value: str, width: int) -> str:
        """Unmasked attention of [1, H, T, D] each, the query already scaled -> [1, T, width]."""
        scores = self.op("MatMul", [query, self.transpose(key, 0, 1, 3, 2)])
        mixed = self.op("MatMul", [self.op("Softmax", [scores], axis=-1), value])
        return self.reshape(self.transpose(mixed, 0, 2, 1, 3), 0, 0, width)

    def save(self, path: Path, inputs: list[tuple], outputs: list[tuple]) -> None:
        """Writes the model. Inputs are (name, numpy type, shape), outputs (node output, name, shape)."""
        for source, name, _ in outputs:
            self.nodes.append(helper.make_node("Identity", [source], [name], name=name))
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), s) for n, t, s in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for _, name, shape in outputs],
            self.initializers,
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in (("", OPSET), (DOMAIN, 1), ("com.microsoft", 1))]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), path)
