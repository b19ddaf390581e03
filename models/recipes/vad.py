"""Voice activity: Silero VAD 6.2, the variant for one 32 ms window at 16 kHz.

Of the published variants this one is free of control flow, so it runs in tract
as it is. A window is 512 new samples after the last 64 of the window before;
the LSTM's state goes in and comes out as a tensor.
"""

from pathlib import Path

import numpy as np
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
    "attribution": "Silero VAD by the Silero Team, unchanged; the recordings in parity.safetensors come from Moonshine Voice.",
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
    (out / "model.onnx").write_bytes(fetch(SILERO_VAD).read(MODEL))
    recordings = speech(fetch)
    cases = [recordings["beckett"], with_silence(recordings["clone-test"])]
    write_parity(out, [{"audio": pcm, "probability": probabilities(out / "model.onnx", pcm)} for pcm in cases])
    write_pack(out, MANIFEST, sources)


def with_silence(pcm: np.ndarray) -> np.ndarray:
    """The recording between two seconds of digital silence, where the state must come to rest."""
    silence = np.zeros(2 * SAMPLE_RATE, np.int16)
    return np.concatenate([silence, pcm, silence])


def probabilities(model: Path, pcm: np.ndarray) -> np.ndarray:
    """What the original graph says of each whole window."""
    session = onnxruntime.InferenceSession(model)
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
