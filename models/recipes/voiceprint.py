"""Voiceprint: WeSpeaker's ResNet34, trained on VoxCeleb, with weights in int8.

Moonshine Voice carries the model (pyannote.ai's redistribution, CC BY 4.0)
inside its shared library, as an onnxruntime file under a C++ symbol. Its graph is
written anew around the runtime's own convolution, with the weights as they are.
"""

import io
import tempfile
from pathlib import Path

import kaldi_native_fbank
import numpy as np
import onnx
import onnxruntime
from elftools.elf.elffile import ELFFile
from onnx import numpy_helper

from .common import MOONSHINE_VOICE, SAMPLE_RATE, Fetcher, RecipeError, bytes_sha256, speech, to_float
from .common import ort_to_onnx, write_license, write_pack, write_parity
from .onnx_graph import Graph

LIBRARY = "moonshine_voice/libmoonshine.so"
SYMBOL = "embedding_ort_data"
MODEL_SHA256 = "6e4af7d49562e6e7042672e444d6394935cb2c23c3a7dd4919da45922b91735b"
#: Residual blocks in each of the four layers.
BLOCKS = (3, 4, 6, 3)
#: Mel bands and channels that they leave.
ROWS, CHANNELS = 10, 256
#: The original adds it too, so that a single frame divides nothing by zero.
EPSILON = 1e-8
INT16_SCALE = 32768.0

FBANK = {
    "sample_rate_hz": SAMPLE_RATE,
    "frame_length_ms": 25.0,
    "frame_shift_ms": 10.0,
    "mel_bins": 80,
    "low_hz": 20.0,
    "high_hz": 0.0,
    "window": "hamming",
    "preemphasis": 0.97,
    "remove_dc_offset": True,
    "scale": INT16_SCALE,
    "normalization": "utterance_mean",
}

# Found with the tracker that will use them, cut to speech and learning from a second
# of it on: on random casts of the 24 speakers of CMU AN4 that are kept for calibration,
# and on casts of 251 speakers of LibriSpeech train-clean-100, cut into short turns with
# a noise, a level and a microphone of their own for each session. Attribution hardly
# changes for a match from 0.38 to 0.46; below, speakers are merged, above, they are
# split. Turns of one speaker and of different ones have a median cosine of 0.68 and
# 0.13 on AN4, 0.59 and 0.08 on the other.
THRESHOLDS = {"match": 0.42, "update": 0.48, "merge": 0.36}
# Platt scaling on pairs of turns of both, a second of speech or more each.
CALIBRATION = {"slope": 30.5, "offset": -11.2}

MANIFEST = {
    "kind": "voiceprint",
    "name": "wespeaker-voxceleb-resnet34",
    "version": "1",
    "license": "CC-BY-4.0",
    "attribution": (
        "Model by WeSpeaker, redistributed by pyannote.ai and Moonshine AI under CC BY 4.0 "
        "(https://creativecommons.org/licenses/by/4.0/). Changed: converted from onnxruntime's format to ONNX and "
        "laid out for one utterance at a time, weights as published. The recordings in parity.safetensors come from Moonshine Voice (MIT)."
    ),
    "precision": "int8 weights, f32 arithmetic",
    "front_end": {"fbank": FBANK},
    "output": {"shape": [256], "meaning": "voiceprint, to be compared by cosine"},
    "thresholds": THRESHOLDS,
    "calibration": CALIBRATION,
    "parity": {"metric": "min_cosine", "bound": 0.999},
}

def build(fetch: Fetcher, out: Path) -> None:
    write_license(out, MOONSHINE_VOICE, fetch)
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder) / "original.onnx"
        ort_to_onnx(embedded_model(fetch(MOONSHINE_VOICE).read(LIBRARY)), original)
        write_model(out / "model.onnx", Original(onnx.load(original)))
        session = onnxruntime.InferenceSession(original)
    cases = [{"audio": pcm, "embedding": embed(session, pcm)} for pcm in utterances(speech(fetch))]
    write_parity(out, cases)
    write_pack(out, MANIFEST, [MOONSHINE_VOICE])


def utterances(recordings: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Utterances of 0.5 to 6 seconds; the first two are of one voice, the third and fourth of others."""
    cuts = [("beckett", 0.5, 3.5), ("beckett", 5.0, 8.0), ("clone-test", 0.0, 4.0)]
    cuts += [("endgame_nagg_nell", 12.0, 15.0), ("two_cities", 20.0, 26.0), ("beckett", 0.5, 1.0), ("beckett", 2.0, 3.23)]
    return [recordings[name][int(start * SAMPLE_RATE) : int(end * SAMPLE_RATE)] for name, start, end in cuts]


def embedded_model(library: bytes) -> bytes:
    """Reads the constant that the library keeps the model in."""
    elf = ELFFile(io.BytesIO(library))
    symbols = elf.get_section_by_name(".dynsym").iter_symbols()
    symbol = next((s for s in symbols if SYMBOL in s.name and s["st_size"] > 1_000_000), None)
    if symbol is None:
        raise RecipeError(f"{LIBRARY} has no symbol {SYMBOL}")
    address, size = symbol["st_value"], symbol["st_size"]
    offset = next(iter(elf.address_offsets(address, size)))
    data = library[offset : offset + size]
    if bytes_sha256(data) != MODEL_SHA256:
        raise RecipeError(f"{SYMBOL} in {LIBRARY} is not the known model")
    return data


class Original:
    """The published graph, as far as it is a set of weights."""

    def __init__(self, model: onnx.ModelProto):
        self._tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self._producers = {output: node for node in model.graph.node for output in node.output}

    def convolution(self, name: str) -> onnx.NodeProto | None:
        """The convolution of a module, if there is one."""
        return self._producers.get(f"/resnet/{name}/Conv_output_0")

    def parameters(self, node: onnx.NodeProto) -> tuple[np.ndarray, np.float32, np.float32, np.ndarray]:
        """Weight, its scale and offset, and bias of a convolution or of the last layer."""
        weight, bias = node.input[1], self._tensors[node.input[2]]
        if weight in self._tensors:
            return self._tensors[weight], np.float32(1), np.float32(0), bias
        added = self._producers[weight]
        scaled = self._producers[added.input[0]]
        cast = self._producers[scaled.input[0]]
        scale, offset = (self._tensors[step.input[1]].reshape(()) for step in (scaled, added))
        return self._tensors[cast.input[0]], scale, offset, bias

    def last_layer(self) -> onnx.NodeProto:
        """The linear layer that gives the embedding."""
        return self._producers["embedding"]


def write_model(path: Path, original: Original) -> None:
    """fbank [1, T, 80] -> embedding [1, 256], not normalised."""
    graph = Graph()
    image = graph.transpose("fbank", 2, 1, 0)
    x = convolution(graph, original, image, "conv1")
    for layer, blocks in enumerate(BLOCKS, start=1):
        for block in range(blocks):
            x = residual_block(graph, original, x, f"layer{layer}/layer{layer}.{block}")
    embedding = last_layer(graph, original, statistics(graph, x))
    graph.save(
        path,
        [("fbank", np.float32, [1, "T", FBANK["mel_bins"]])],
        [(graph.reshape(embedding, 1, 256), "embedding", [1, 256])],
    )


def residual_block(graph: Graph, original: Original, x: str, name: str) -> str:
    """Two convolutions around which the input goes, itself or convolved."""
    inner = convolution(graph, original, x, f"{name}/conv1")
    shortcut = f"{name}/shortcut/shortcut.0"
    if original.convolution(shortcut) is not None:
        x = convolution(graph, original, x, shortcut, relu=0)
    return convolution(graph, original, inner, f"{name}/conv2", shortcut=x)


def convolution(graph: Graph, original: Original, x: str, name: str, shortcut: str = "", relu: int = 1) -> str:
    """The runtime's convolution, with the weight as [K, K*C, outputs]."""
    node = original.convolution(name)
    weight, scale, offset, bias = original.parameters(node)
    outputs, channels, kernel, _ = weight.shape
    weight = weight.transpose(2, 3, 1, 0).reshape(kernel, kernel * channels, outputs)
    stride = next(attribute.ints[0] for attribute in node.attribute if attribute.name == "strides")
    return graph.convolution(x, weight, scale, offset, bias, shortcut, stride=stride, relu=relu)


def statistics(graph: Graph, x: str) -> str:
    """Mean and unbiased standard deviation over time: [10, T, 256] -> [1, 1, 5120]."""
    time = graph.integers(1)
    mean = graph.op("ReduceMean", [x, time])
    centred = graph.op("Sub", [x, mean])
    energy = graph.op("ReduceSum", [graph.op("Mul", [centred, centred]), time])
    zero, one, epsilon = (graph.constant(np.float32(value)) for value in (0, 1, EPSILON))
    frames = graph.op("ReduceSum", [graph.op("Add", [graph.op("Mul", [centred, zero]), one]), time])
    freedom = graph.op("Add", [graph.op("Sub", [frames, one]), epsilon])
    deviation = graph.op("Sqrt", [graph.op("Div", [energy, freedom])])
    flat = [graph.reshape(part, 1, 1, ROWS * CHANNELS) for part in (mean, deviation)]
    return graph.op("Concat", flat, axis=2)


def last_layer(graph: Graph, original: Original, pooled: str) -> str:
    """The linear layer as a convolution of one place; its inputs come row by row, not channel by channel."""
    weight, scale, offset, bias = original.parameters(original.last_layer())
    weight = weight.reshape(len(bias), 2, CHANNELS, ROWS).transpose(1, 3, 2, 0)
    weight = weight.reshape(1, 2 * ROWS * CHANNELS, len(bias))
    return graph.convolution(pooled, weight, scale, offset, bias, stride=1, relu=0)


def embed(session: onnxruntime.InferenceSession, pcm: np.ndarray) -> np.ndarray:
    """What the original graph gives, over features by an independent implementation of Kaldi's front end."""
    features = fbank(pcm)[None]
    weights = np.ones(features.shape[:2], np.float32)
    embedding = session.run(None, {"fbank": features, "weights": weights})[0][0]
    return embedding / np.linalg.norm(embedding)


def fbank(pcm: np.ndarray) -> np.ndarray:
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = SAMPLE_RATE
    options.frame_opts.window_type = FBANK["window"]
    options.frame_opts.dither = 0.0
    options.mel_opts.num_bins = FBANK["mel_bins"]
    online = kaldi_native_fbank.OnlineFbank(options)
    online.accept_waveform(SAMPLE_RATE, (to_float(pcm) * INT16_SCALE).tolist())
    online.input_finished()
    features = np.stack([online.get_frame(i) for i in range(online.num_frames_ready)])
    return features - features.mean(axis=0)
