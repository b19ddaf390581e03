"""Moonshine tiny-en as its authors publish it: the weights, and the original graphs as reference.

The wheel holds two graphs in onnxruntime's own format: an encoder, and a decoder
whose `If` chooses between the first step and the steps with a cache. Both are
already quantized to 8 bits and fused for onnxruntime, so other engines cannot
load them. Architecture: Jeffries et al., "Moonshine: Speech Recognition for Live
Transcription and Voice Commands", 2024.
"""

import re
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from .common import RecipeError
from .onnx_graph import Weight

ASSETS = "moonshine_voice/assets/tiny-en"
LAYERS = 6
HEADS = 8
HEAD_WIDTH = 36
WIDTH = HEADS * HEAD_WIDTH
START_TOKEN = 1
END_TOKEN = 2

_QUANTIZED_PRODUCTS = {
    # position of weight, scale, zero point and bias among the node's inputs
    "MatMulIntegerToFloat": (1, 3, 5, 6),
    "DynamicQuantizeMatMul": (1, 2, 3, 4),
}


@dataclass
class Weights:
    """Weights by the name of the module that they belong to."""

    linear: dict[str, Weight] = field(default_factory=dict)
    bias: dict[str, np.ndarray] = field(default_factory=dict)
    norm: dict[str, np.ndarray] = field(default_factory=dict)
    conv: dict[str, np.ndarray] = field(default_factory=dict)
    group_norm: tuple[np.ndarray, np.ndarray] | None = None
    inverse_frequencies: np.ndarray | None = None


class Original:
    """The published graphs: source of the weights, and the reference to compare with."""

    def __init__(self, wheel: zipfile.ZipFile):
        graphs = {name: wheel.read(f"{ASSETS}/{name}.ort") for name in ("encoder_model", "decoder_model_merged")}
        self._encoder_bytes, self._decoder_bytes = graphs.values()
        self._encoder = _session(self._encoder_bytes)
        self._decoder = _session(self._decoder_bytes)

    def weights(self) -> tuple[Weights, Weights]:
        """Weights of the encoder and of the decoder."""
        return _encoder_weights(_as_onnx(self._encoder_bytes)), _decoder_weights(_as_onnx(self._decoder_bytes))

    def transcribe(self, samples: np.ndarray, max_tokens: int) -> list[int]:
        """Greedy decoding with the original graphs; ends with the end token unless cut."""
        mask = np.ones((1, len(samples)), np.int64)
        hidden = self._encoder.run(None, {"input_values": samples[None], "attention_mask": mask})[0]
        names = [value.name for value in self._decoder.get_inputs()]
        outputs = [value.name for value in self._decoder.get_outputs()]
        cache = {n: np.zeros((1, HEADS, 0, HEAD_WIDTH), np.float32) for n in names if n.startswith("past_key_values")}
        tokens = [START_TOKEN]
        while len(tokens) <= max_tokens and tokens[-1] != END_TOKEN:
            first = len(tokens) == 1
            fixed = {
                "input_ids": np.array([tokens[-1:]], np.int64),
                "encoder_hidden_states": hidden,
                "encoder_attention_mask": mask,
                "use_cache_branch": np.array([not first]),
            }
            feed = {name: value for name, value in {**fixed, **cache}.items() if name in names}
            results = dict(zip(outputs, self._decoder.run(None, feed)))
            tokens.append(int(results["logits"][0, -1].argmax()))
            for name in cache:
                # Past the first step the graph hands back no cross-attention cache worth keeping.
                if first or ".decoder." in name:
                    cache[name] = results[name.replace("past_key_values", "present")]
        return tokens[1:]


def vocabulary(wheel: zipfile.ZipFile) -> list[bytes]:
    """What each token adds to a transcript, as bytes; nothing for a control token."""
    return [_text_of(piece) for piece in _pieces(wheel.read(f"{ASSETS}/tokenizer.bin"))]


def _pieces(data: bytes) -> list[bytes]:
    """The tokenizer's file: each piece after its length, which takes 2 bytes from 128 on."""
    pieces, at = [], 0
    while at < len(data):
        length, at = data[at], at + 1
        if length >= 128:
            length, at = data[at] * 128 + length - 128, at + 1
        pieces.append(data[at : at + length])
        at += length
    return pieces


def _text_of(piece: bytes) -> bytes:
    if re.fullmatch(rb"<unk>|</?s>|<<ST_\d+>>", piece):
        return b""
    return piece.replace("\u2581".encode(), b" ")


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.load_model_format", "ORT")
    return options


def _session(data: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(data, _options())


def _as_onnx(data: bytes) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        options = _options()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.save_model_format", "ONNX")
        options.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(data, options)
        return onnx.load(path)


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    return {value.name: numpy_helper.to_array(value) for value in graph.initializer}


def _layer_name(node: onnx.NodeProto) -> str | None:
    """`/model/decoder/layers.3/mlp/fc1/MatMul_quant` -> `3.mlp.fc1`."""
    found = re.match(r"(?:/model/decoder)?/layers\.(\d+)/(.+)/[^/]+$", node.name)
    return f"{found[1]}.{found[2].replace('/', '.')}" if found else None


def _collect_common(node: onnx.NodeProto, constants: dict, weights: Weights) -> None:
    """Takes the products and layer normalisations, which both graphs write alike."""
    if node.op_type in _QUANTIZED_PRODUCTS:
        name = _layer_name(node) or "proj_out"
        at = _QUANTIZED_PRODUCTS[node.op_type]
        weights.linear[name] = Weight.of(*(constants[node.input[i]] for i in at[:3]))
        if len(node.input) > at[3] and node.input[at[3]]:
            weights.bias[name] = constants[node.input[at[3]]]
    elif node.op_type in ("LayerNormalization", "SkipLayerNormalization"):
        at = 2 if node.op_type.startswith("Skip") else 1
        if constants[node.input[at + 1]].any():
            raise RecipeError(f"{node.name} has a bias, which this model should not have")
        weights.norm[_layer_name(node) or "norm"] = constants[node.input[at]]


def _encoder_weights(model: onnx.ModelProto) -> Weights:
    constants, weights, group = _constants(model.graph), Weights(), {}
    for node in model.graph.node:
        _collect_common(node, constants, weights)
        if node.op_type in ("Conv", "FusedConv"):
            name = node.name.split("/")[1]
            weights.conv[name] = constants[node.input[1]]
            if len(node.input) > 2:
                weights.bias[name] = constants[node.input[2]]
        elif node.name in ("/groupnorm/Mul", "/groupnorm/Add"):
            group[node.op_type] = constants[node.input[1]].reshape(-1)
        elif node.name == "/rotary_emb/Expand":
            weights.inverse_frequencies = constants[node.input[0]].reshape(-1)
    weights.group_norm = group["Mul"], group["Add"]
    return weights


def _decoder_weights(model: onnx.ModelProto) -> Weights:
    weights = Weights()
    (choice,) = (node for node in model.graph.node if node.op_type == "If")
    # Only the branch of the first step holds the projections for cross-attention.
    for branch in (attribute.g for attribute in choice.attribute):
        constants = _constants(model.graph) | _constants(branch)
        for node in branch.node:
            _collect_common(node, constants, weights)
            if node.name == "/model/decoder/embed_tokens/Gather":
                embedding = constants[node.input[0]]
    if not np.array_equal(embedding.T, weights.linear["proj_out"].q):
        raise RecipeError("the token embedding and the output projection are not the one matrix they should be")
    return weights
