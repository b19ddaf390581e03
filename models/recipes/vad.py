"""Voice activity: Silero VAD 6.2, the variant for one 32 ms window at 16 kHz.

Of the published variants this one is free of control flow, so tract can run it;
only its nodes get names that are unique. A window is 512 new samples after the last 64 of the window before;
the LSTM's state goes in and comes out as a tensor.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from .common import MOONSHINE_VOICE, SAMPLE_RATE, Fetcher, Wheel, speech, to_float
from .common import write_license, write_pack, write_parity

SILERO_VAD = Wheel("silero-vad", "6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8")
WINDOW = 512
CONTEXT = 64
MODEL = "silero_vad/data/silero_vad_openvino_16k.onnx"

MANIFEST = {
    "kind": "vad",
    "name": "silero-vad-16k",
    "version": SILERO_VAD.version,
    "license": "MIT",
    "attribution": "Silero VAD by the Silero Team, unchanged but for the names of nodes; the recordings in parity.safetensors come from Moonshine Voice.",
    "precision": "f32",
    "front_end": {
        "windows": {"sample_rate_hz": SAMPLE_RATE, "window_samples": WINDOW, "context_samples": CONTEXT},
    },
    "output": {"shape": [1], "meaning": "probability of speech in the window"},
    "parity": {"metric": "max_abs_difference", "bound": 1e-4},
}


def build(fetch: Fetcher, out: Path) -> None:
    sources = [SILERO_VAD, MOONSHINE_VOICE]
    for wheel in sources:
        write_license(out, wheel, fetch)
    original = fetch(SILERO_VAD).read(MODEL)
    onnx.save(with_unique_names(original), out / "model.onnx")
    session = onnxruntime.InferenceSession(original)
    recordings = speech(fetch)
    cases = [recordings["beckett"], with_silence(recordings["clone-test"])]
    write_parity(out, [{"audio": pcm, "probability": probabilities(session, pcm)} for pcm in cases])
    write_pack(out, MANIFEST, sources)


def with_unique_names(model: bytes) -> onnx.ModelProto:
    """The model with each node named after its first output."""
    renamed = onnx.load_from_string(model)
    for node in renamed.graph.node:
        node.name = node.output[0]
    return renamed


def with_silence(pcm: np.ndarray) -> np.ndarray:
    """The recording between two seconds of digital silence, where the state must come to rest."""
    silence = np.zeros(2 * SAMPLE_RATE, np.int16)
    return np.concatenate([silence, pcm, silence])


def probabilities(session: onnxruntime.InferenceSession, pcm: np.ndarray) -> np.ndarray:
    """What the original graph says of each whole window."""
    state = np.zeros((2, 1, 128), np.float32)
    context = np.zeros(CONTEXT, np.float32)
    given = []
    for start in range(0, len(pcm) - WINDOW + 1, WINDOW):
        window = to_float(pcm[start : start + WINDOW])
        fed = np.concatenate([context, window])[None]
        probability, state = session.run(None, {"input": fed, "state": state})
        context = window[-CONTEXT:]
        given.append(probability.item())
    return np.array(given, np.float32)
