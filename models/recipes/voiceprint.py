"""Voiceprint: WeSpeaker's ResNet34, trained on VoxCeleb, with weights in int8.

Moonshine Voice carries the model (pyannote.ai's redistribution, CC BY 4.0)
inside its shared library, as an onnxruntime file under a C++ symbol. The trunk
is taken as it is. Its pooling, which computes shapes at run time, is written
anew from standard operators: mean and unbiased standard deviation over time,
then one linear layer.
"""

import io
import tempfile
from pathlib import Path

import kaldi_native_fbank
import numpy as np
import onnx
import onnx.compose
import onnx.parser
import onnx.utils
import onnxruntime
from elftools.elf.elffile import ELFFile
from onnx import numpy_helper

from .common import MOONSHINE_VOICE, SAMPLE_RATE, Fetcher, RecipeError, bytes_sha256, speech, to_float
from .common import ort_to_onnx, write_license, write_pack, write_parity

LIBRARY = "moonshine_voice/libmoonshine.so"
SYMBOL = "embedding_ort_data"
MODEL_SHA256 = "6e4af7d49562e6e7042672e444d6394935cb2c23c3a7dd4919da45922b91735b"
TRUNK_OUTPUT = "/resnet/layer4/layer4.2/Relu_1_output_0"
LINEAR = "resnet.seg_1"
# Channels times mel bands that the trunk leaves for each of its frames.
ROWS = 256 * 10
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

# Found on 24 speakers of CMU AN4 (300 turns in 12 sessions) with the tracker that
# will use them: best cosine over stored centroids, moving average of weight 0.05,
# turns of a second and more. Over 150 random casts of six speakers, attribution is
# best (97.9 %) for a match at 0.40 to 0.42 and an update 0.05 above it. Below,
# speakers are merged; above, they are split. No two centroids of different
# speakers, out of 7,575 pairs, came closer than 0.58.
THRESHOLDS = {"match": 0.41, "update": 0.46, "merge": 0.6}

MANIFEST = {
    "kind": "voiceprint",
    "name": "wespeaker-voxceleb-resnet34",
    "version": "1",
    "license": "CC-BY-4.0",
    "attribution": (
        "Model by WeSpeaker, redistributed by pyannote.ai and Moonshine AI under CC BY 4.0 "
        "(https://creativecommons.org/licenses/by/4.0/). Changed: converted from onnxruntime's format to ONNX, "
        "pooling rewritten for one utterance. The recordings in parity.safetensors come from Moonshine Voice (MIT)."
    ),
    "precision": "int8 weights, f32 arithmetic",
    "front_end": {"fbank": FBANK},
    "output": {"shape": [256], "meaning": "voiceprint, to be compared by cosine"},
    "thresholds": THRESHOLDS,
    "parity": {"metric": "min_cosine", "bound": 0.999},
}

# The original adds the same 1e-8, so that one single frame divides nothing by zero.
POOLING = """
<ir_version: 8, opset_import: ["" : 17]>
pooling (float[1, 256, 10, t] trunk) => (float[1, 256] embedding) {
    rows = Constant<value_ints = [1, 2560, -1]>()
    columns = Constant<value_ints = [1, 2560]>()
    time = Constant<value_ints = [2]>()
    zero = Constant<value_float = 0.0>()
    one = Constant<value_float = 1.0>()
    epsilon = Constant<value_float = 1e-8>()

    x = Reshape(trunk, rows)
    mean_kept = ReduceMean<axes = [2], keepdims = 1>(x)
    centred = Sub(x, mean_kept)
    squares = Mul(centred, centred)
    energy = ReduceSum<keepdims = 1>(squares, time)

    zeros = Mul(centred, zero)
    ones = Add(zeros, one)
    frames = ReduceSum<keepdims = 1>(ones, time)
    freedom_less = Sub(frames, one)
    freedom = Add(freedom_less, epsilon)
    variance = Div(energy, freedom)
    deviation_kept = Sqrt(variance)

    mean = Reshape(mean_kept, columns)
    deviation = Reshape(deviation_kept, columns)
    mean_weight_cast = Cast<to = 1>(mean_weight)
    mean_weight_scaled = Mul(mean_weight_cast, scale)
    mean_weight_float = Add(mean_weight_scaled, offset)
    deviation_weight_cast = Cast<to = 1>(deviation_weight)
    deviation_weight_scaled = Mul(deviation_weight_cast, scale)
    deviation_weight_float = Add(deviation_weight_scaled, offset)
    from_mean = Gemm<transB = 1>(mean, mean_weight_float, bias)
    from_deviation = Gemm<transB = 1>(deviation, deviation_weight_float)
    embedding = Add(from_mean, from_deviation)
}
"""


def build(fetch: Fetcher, out: Path) -> None:
    write_license(out, MOONSHINE_VOICE, fetch)
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder) / "original.onnx"
        ort_to_onnx(embedded_model(fetch(MOONSHINE_VOICE).read(LIBRARY)), original)
        onnx.save(rewrite(onnx.load(original)), out / "model.onnx")
        session = onnxruntime.InferenceSession(original)
    cases = [{"audio": pcm, "embedding": embed(session, pcm)} for pcm in utterances(speech(fetch))]
    write_parity(out, cases)
    write_pack(out, MANIFEST, [MOONSHINE_VOICE])


def utterances(recordings: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Utterances of 0.5 to 10 seconds; the first two are of one voice, the third is of another."""
    cuts = [("beckett", 0.5, 3.5), ("beckett", 5.0, 8.0), ("two_cities", 1.0, 4.0)]
    cuts += [("beckett", 0.5, 1.0), ("clone-test", 0.0, 4.0), ("two_cities", 20.0, 30.0), ("two_cities", 10.0, 11.23)]
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


def rewrite(original: onnx.ModelProto) -> onnx.ModelProto:
    """The original for one utterance: fbank [1, T, 80] -> embedding [1, 256]."""
    shape = [1, 256, 10, "t"]
    original.graph.value_info.append(onnx.helper.make_tensor_value_info(TRUNK_OUTPUT, onnx.TensorProto.FLOAT, shape))
    trunk = onnx.utils.Extractor(original).extract_model(["fbank"], [TRUNK_OUTPUT])
    pooling = onnx.parser.parse_model(POOLING)
    pooling.graph.initializer.extend(linear_layer(original))
    del trunk.opset_import[:]
    trunk.opset_import.extend(pooling.opset_import)
    trunk.ir_version = pooling.ir_version
    model = onnx.compose.merge_models(trunk, pooling, io_map=[(TRUNK_OUTPUT, "trunk")])
    for dimension, size in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, "T", 80), strict=True):
        dimension.Clear()
        if isinstance(size, int):
            dimension.dim_value = size
        else:
            dimension.dim_param = size
    onnx.checker.check_model(model)
    return model


def linear_layer(original: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The last layer's weights, in halves that are small enough for tract to unpack once and for all (4 MiB as f32)."""
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in original.graph.initializer}
    weight = tensors[f"{LINEAR}.weight_quantized"]
    layer = {
        "mean_weight": weight[:, :ROWS],
        "deviation_weight": weight[:, ROWS:],
        "scale": tensors[f"{LINEAR}.weight_scale"],
        "offset": tensors[f"{LINEAR}.weight_zero_point"],
        "bias": tensors[f"{LINEAR}.bias"],
    }
    return [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in layer.items()]


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
