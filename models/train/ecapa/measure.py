"""How well a voiceprint tells voices apart, and what it costs.

Every pair of turns is a trial. Equal error rate and minimum detection cost are
NIST's; time is one thread of onnxruntime over three seconds of speech.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from recipes.common import SAMPLE_RATE

from . import features
from .speech import Recording

LONGEST_TURN = 8 * SAMPLE_RATE
PIECE = 2 * SAMPLE_RATE


class Model:
    """A voiceprint in ONNX; gives embeddings of length 1."""

    def __init__(self, path: Path, threads: int = 1):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(path, options)
        self._weighted = any(entry.name == "weights" for entry in self._session.get_inputs())

    def __call__(self, fbank: np.ndarray) -> np.ndarray:
        """The embedding of features [1, T, 80]."""
        # The published ResNet34 takes a weight for each frame.
        weights = {"weights": np.ones(fbank.shape[:2], np.float32)} if self._weighted else {}
        embedding = self._session.run(["embedding"], {"fbank": fbank, **weights})[0][0]
        return embedding / np.linalg.norm(embedding)

    def embed(self, pcm: np.ndarray) -> np.ndarray:
        """The embedding of int16 samples."""
        return self(features.of(pcm).numpy())

    def milliseconds(self) -> float:
        """The median time for three seconds of speech, without the front end."""
        noise = np.random.default_rng(0).standard_normal(3 * SAMPLE_RATE) * 1000
        x = features.of(noise.astype(np.int16)).numpy()
        times = []
        for _ in range(30):
            start = time.perf_counter()
            self(x)
            times.append(time.perf_counter() - start)
        return 1000 * float(np.median(times))


@dataclass(frozen=True)
class Turns:
    """Embeddings [N, D] of length 1, and who spoke."""

    embeddings: np.ndarray
    speakers: np.ndarray

    @staticmethod
    def of(model: Model, speech: list[Recording], shortest_s: float) -> "Turns":
        """One for each recording of `shortest_s` and more; what is too long for a turn is cut up."""
        turns = [(r.speaker, turn) for r in speech for turn in cut(r.samples())]
        kept = [(speaker, turn) for speaker, turn in turns if len(turn) >= shortest_s * SAMPLE_RATE]
        return Turns(np.stack([model.embed(turn) for _, turn in kept]), np.array([speaker for speaker, _ in kept]))

    def trials(self) -> tuple[np.ndarray, np.ndarray]:
        """The cosine of every pair, and whether one person spoke both."""
        first, second = np.triu_indices(len(self.speakers), k=1)
        return (self.embeddings @ self.embeddings.T)[first, second], self.speakers[first] == self.speakers[second]


def cut(pcm: np.ndarray) -> list[np.ndarray]:
    """A turn as it is; a speech as pieces of the length of a turn."""
    return [pcm] if len(pcm) <= LONGEST_TURN else [pcm[i : i + PIECE] for i in range(0, len(pcm), PIECE)]


def error_rates(scores: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False rejects and false accepts at every threshold, from the lowest score to above the highest."""
    same = same[np.argsort(scores)]
    rejects = np.concatenate([[0], np.cumsum(same)]) / same.sum()
    accepts = 1 - np.concatenate([[0], np.cumsum(~same)]) / (~same).sum()
    return rejects, accepts


def eer(scores: np.ndarray, same: np.ndarray) -> float:
    """The rate at which false rejects and false accepts are alike."""
    rejects, accepts = error_rates(scores, same)
    nearest = np.argmin(np.abs(rejects - accepts))
    return float(rejects[nearest] + accepts[nearest]) / 2


def min_dcf(scores: np.ndarray, same: np.ndarray, prior: float = 0.01) -> float:
    """Minimum detection cost, both errors of cost 1, relative to answering always the same."""
    rejects, accepts = error_rates(scores, same)
    return float((prior * rejects + (1 - prior) * accepts).min() / min(prior, 1 - prior))


def table(models: list[Path], speech: list[Recording], shortest_s: float) -> str:
    """One line of Markdown for each model."""
    lines = ["| model | EER | minDCF | ms for 3 s | bytes |", "|---|---|---|---|---|"]
    for path in models:
        model = Model(path)
        scores, same = Turns.of(model, speech, shortest_s).trials()
        figures = f"{eer(scores, same):.2%} | {min_dcf(scores, same):.3f} | {model.milliseconds():.1f}"
        lines.append(f"| {path.name} | {figures} | {path.stat().st_size} |")
    lines.append(f"\n{same.sum()} trials of one speaker, {(~same).sum()} of two, turns of {shortest_s} s and more")
    return "\n".join(lines)
