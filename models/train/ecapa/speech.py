"""Recordings to train and measure on: who speaks in which file.

Two kinds of folders are understood. One with an `episode.json` gives a file and a
speaker for each turn. Any other is taken for one file a speaker, as no label is
needed: the teacher says what a voice is.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from recipes.common import SAMPLE_RATE

SUFFIXES = (".flac", ".wav")


@dataclass(frozen=True)
class Recording:
    """One file in which one person speaks."""

    path: Path
    speaker: str

    def samples(self, speed: float = 1.0) -> np.ndarray:
        """int16 at 16 kHz, played `speed` times as fast: tempo, pitch and formants move together."""
        sound, rate = soundfile.read(self.path, dtype="float32", always_2d=True)
        sound = soxr.resample(sound.mean(axis=1), rate * speed, SAMPLE_RATE, quality="HQ")
        return np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)


def recordings(folder: Path) -> list[Recording]:
    """Every recording of a folder, in a fixed order."""
    episode = folder / "episode.json"
    if episode.exists():
        sessions = json.loads(episode.read_text())["sessions"]
        found = {(turn["audio"], turn["speaker"]) for session in sessions for turn in session["turns"]}
        return [Recording((folder / audio).resolve(), speaker) for audio, speaker in sorted(found)]
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    if not files:
        raise FileNotFoundError(f"{folder} holds neither an episode.json nor any of {', '.join(SUFFIXES)}")
    return [Recording(path, path.stem) for path in files]
