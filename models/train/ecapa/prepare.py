"""Speech and the teacher's opinion of it, as one shard for each speed.

A voice played faster or slower is another voice to the teacher, so each speed
multiplies the speakers. A shard that lies on the disk is not made again.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from recipes.common import SAMPLE_RATE

from . import features
from .speech import Recording, recordings
from .teacher import Teacher

SPEEDS = (1.0, 0.9, 0.8, 1.1, 1.2)
#: The teacher hears this much at once, then goes on by so much.
WINDOW = 3 * SAMPLE_RATE
HOP = 3 * SAMPLE_RATE
#: Less speech than this says too little about a voice to teach it.
SHORTEST = SAMPLE_RATE // 2
#: Of a folder with one file a speaker, every so manyth speaker is kept for measuring.
HELD_OUT_EVERY = 8


@dataclass(frozen=True)
class Shard:
    """Utterances as one run of samples, and what the teacher says of windows of them.

    Utterance `i` is `samples[offsets[i]:offsets[i + 1]]`, spoken by `speakers[i]`.
    Window `j` starts at `starts[j]` of utterance `utterances[j]`; `embeddings` is
    [windows, 256], of length 1. Its hints are `hints[hint_offsets[j]:hint_offsets[j + 1]]`.
    """

    samples: np.ndarray
    offsets: np.ndarray
    speakers: np.ndarray
    utterances: np.ndarray
    starts: np.ndarray
    embeddings: np.ndarray
    hints: np.ndarray
    hint_offsets: np.ndarray

    def save(self, path: Path) -> None:
        """Writes aside and renames, so that a shard is a whole one or none."""
        aside = path.with_suffix(".tmp.npz")
        np.savez(aside, **vars(self))
        aside.replace(path)

    @staticmethod
    def load(path: Path) -> "Shard":
        with np.load(path) as arrays:
            return Shard(**arrays)

    def window(self, index: int) -> np.ndarray:
        """The samples of a window."""
        utterance = self.utterances[index]
        begin = self.offsets[utterance] + self.starts[index]
        return self.samples[begin : min(begin + WINDOW, self.offsets[utterance + 1])]

    def hint(self, index: int) -> np.ndarray:
        """The hints of a window, [columns, HINT]."""
        return self.hints[self.hint_offsets[index] : self.hint_offsets[index + 1]]


def prepare(work: Path, downloads: Path, speech: list[Path], held_out: list[Path], threads: int, limit: int | None) -> None:
    """Makes `held-out.npz` and a `speed-*.npz` for each speed in `work`.

    `limit` keeps only so many recordings of each folder, for a trial.
    """
    work.mkdir(parents=True, exist_ok=True)
    teacher = Teacher(downloads, work, threads)
    train, measure = divide([recordings(folder)[:limit] for folder in speech])
    measure += [recording for folder in held_out for recording in recordings(folder)[:limit]]
    features.check(train[0].samples())
    _shard(work / "held-out.npz", measure, 1.0, teacher)
    for speed in SPEEDS:
        _shard(work / f"speed-{speed:.2f}.npz", train, speed, teacher)


def divide(folders: list[list[Recording]]) -> tuple[list[Recording], list[Recording]]:
    """Recordings to train on, and those of the speakers that are held out."""
    train, measure = [], []
    for found in folders:
        one_each = len({recording.speaker for recording in found}) == len(found)
        held = found[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY] if one_each else []
        train += [recording for recording in found if recording not in held]
        measure += held
    return train, measure


def _shard(path: Path, speech: list[Recording], speed: float, teacher: Teacher) -> None:
    if path.exists():
        return
    kept = [(r.speaker, pcm) for r in speech if len(pcm := r.samples(speed)) >= SHORTEST]
    utterances, starts, embeddings, hints = [], [], [], []
    for index, (_, pcm) in enumerate(kept):
        print(f"\r{path.name}: {index + 1} of {len(kept)}", end="", flush=True)
        for start in window_starts(len(pcm)):
            utterances.append(index)
            starts.append(start)
            embedding, hint = teacher(pcm[start : start + WINDOW])
            embeddings.append(embedding)
            hints.append(hint.astype(np.float16))
    print()
    Shard(
        samples=np.concatenate([pcm for _, pcm in kept]),
        offsets=np.cumsum([0, *(len(pcm) for _, pcm in kept)]),
        speakers=np.array([speaker for speaker, _ in kept]),
        utterances=np.array(utterances),
        starts=np.array(starts),
        embeddings=np.stack(embeddings),
        hints=np.concatenate(hints),
        hint_offsets=np.cumsum([0, *map(len, hints)]),
    ).save(path)


def window_starts(length: int) -> list[int]:
    """Windows every `HOP`, the last of them at the very end; one for what is shorter than a window."""
    last = max(0, length - WINDOW)
    return [*range(0, last, HOP), last]
