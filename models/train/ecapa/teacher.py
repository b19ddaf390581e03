"""The ResNet34 of the voiceprint pack, and what it thinks on the way to its answer.

Its last layer weighs the mean and the deviation over time of 2,560 channels. The
same weights applied to each column of those channels say what every 80 ms adds to
the embedding: a hint of where a voice can be heard, hundreds of times as much to
learn from as the embedding alone.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from recipes.common import MOONSHINE_VOICE, Fetcher, ort_to_onnx
from recipes.voiceprint import LIBRARY, Original, embedded_model

from . import features

#: The channels before they are pooled, [1, 2560, T / 8].
CHANNELS = "/resnet/pool/Reshape_output_0"
#: Frames from one hint to the next.
STRIDE = 8
#: Numbers in a hint: one for each output and kind of statistics.
HINT = 512


class Teacher:
    """Gives embeddings and hints."""

    def __init__(self, downloads: Path, work: Path, threads: int):
        published, hinting = work / "teacher.onnx", work / "hinting.onnx"
        if not hinting.exists():
            ort_to_onnx(embedded_model(Fetcher(downloads)(MOONSHINE_VOICE).read(LIBRARY)), published)
            onnx.save(with_hints(onnx.load(published)), hinting)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(hinting, options)

    def __call__(self, pcm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The embedding [256] of int16 samples, of length 1, and the hints [frames / 8, HINT]."""
        x = features.of(pcm).numpy()
        inputs = {"fbank": x, "weights": np.ones(x.shape[:2], np.float32)}
        embedding, hints = self._session.run(["embedding", "hints"], inputs)
        return embedding[0] / np.linalg.norm(embedding[0]), hints[0].T


def with_hints(model: onnx.ModelProto) -> onnx.ModelProto:
    """The published graph with one more output: what each column adds."""
    original = Original(model)
    weight, scale, offset, bias = original.parameters(original.last_layer())
    weight = (weight.astype(np.float32) * scale + offset).reshape(len(bias), 2, -1)
    weight = np.concatenate([weight[:, 0], weight[:, 1]])
    model.graph.initializer.append(numpy_helper.from_array(weight, "hint_weight"))
    model.graph.node.append(helper.make_node("MatMul", ["hint_weight", CHANNELS], ["hints"]))
    model.graph.output.append(helper.make_tensor_value_info("hints", onnx.TensorProto.FLOAT, ["batch", HINT, "columns"]))
    return model
