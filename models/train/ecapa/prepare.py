"""Speech to train on, as one shard for each speed.

A voice played faster or slower is another voice to the teacher, so each speed
multiplies the speakers. A shard that lies on the disk is not made again.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from recipes.common import SAMPLE_RATE

from . import features
from .speech import Recording, recordings

SPEEDS = (1.0, 0.9, 0.8, 1.1, 1.2, 0.85, 1.15)
#: Utterances are cut into windows of this length.
WINDOW = 3 * SAMPLE_RATE
#: Less speech than this says too little about a voice to teach it.
SHORTEST = SAMPLE_RATE // 2
#: Of a folder with one file a speaker, every so manyth speaker is kept for measuring.
HELD_OUT_EVERY = 8


@dataclass(frozen=True)
class Shard:
    """Utterances as one run of samples: `samples[offsets[i]:offsets[i + 1]]`, spoken by `speakers[i]`."""

    samples: np.ndarray
    offsets: np.ndarray
    speakers: np.ndarray

    def save(self, path: Path) -> None:
        """Writes aside and renames, so that a shard is a whole one or none."""
        aside = path.with_suffix(".tmp.npz")
        np.savez(aside, **vars(self))
        aside.replace(path)

    @staticmethod
    def load(path: Path) -> "Shard":
        with np.load(path) as arrays:
            return Shard(arrays["samples"], arrays["offsets"], arrays["speakers"])

    def windows(self) -> list[tuple[str, np.ndarray]]:
        """Speaker and samples of every window; the last one of an utterance lies at its very end."""
        found = []
        for speaker, begin, end in zip(self.speakers, self.offsets, self.offsets[1:]):
            last = max(begin, end - WINDOW)
            found += [(speaker, self.samples[at : min(at + WINDOW, end)]) for at in (*range(begin, last, WINDOW), last)]
        return found


def prepare(work: Path, speech: list[Path], held_out: list[Path], limit: int | None) -> None:
    """Makes `held-out.npz` and a `speed-*.npz` for each speed in `work`.

    `limit` keeps only so many recordings of each folder, for a trial.
    """
    work.mkdir(parents=True, exist_ok=True)
    train, measure = divide([recordings(folder)[:limit] for folder in speech])
    measure += [recording for folder in held_out for recording in recordings(folder)[:limit]]
    features.check(train[0].samples())
    _shard(work / "held-out.npz", measure, 1.0)
    for speed in SPEEDS:
        _shard(work / f"speed-{speed:.2f}.npz", train, speed)


def divide(folders: list[list[Recording]]) -> tuple[list[Recording], list[Recording]]:
    """Recordings to train on, and those of the speakers that are held out."""
    train, measure = [], []
    for found in folders:
        one_each = len({recording.speaker for recording in found}) == len(found)
        held = found[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY] if one_each else []
        train += [recording for recording in found if recording not in held]
        measure += held
    return train, measure


def _shard(path: Path, speech: list[Recording], speed: float) -> None:
    if path.exists():
        return
    print(f"{path.name}: {len(speech)} recordings", flush=True)
    kept = [(r.speaker, pcm) for r in speech if len(pcm := r.samples(speed)) >= SHORTEST]
    Shard(
        samples=np.concatenate([pcm for _, pcm in kept]),
        offsets=np.cumsum([0, *(len(pcm) for _, pcm in kept)]),
        speakers=np.array([speaker for speaker, _ in kept]),
    ).save(path)
