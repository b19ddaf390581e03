"""What the student hears, and what the teacher says of the very same sound.

There are few voices to learn from, and a student that is told what a voice is learns
them by heart. So nothing is told: sounds are made up that nobody ever uttered (two
voices at once, voices whose bands are stretched or squeezed, in noise and rooms), the
teacher hears each of them too, and the student has to agree with it. Lesson `n`
depends on the seed and `n` alone.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from . import features
from .augment import Draw, augment, chosen, mix
from .prepare import Shard
from .teacher import Lesson, Teacher

#: Frames in a crop, and in all the crops of a lesson.
SHORTEST, LONGEST = 64, 296
LESSON_FRAMES = 6_000
#: How often there are two voices, and how far the second is below the first, in dB.
TWO, BELOW = 0.4, (0, 12)
#: How often bands are warped, and how far at most.
WARPED, WARP = 0.6, 0.12


class Lessons:
    """An endless course on the shards of a folder."""

    def __init__(self, work: Path, teacher: Teacher, blocks: int, seed: int):
        self._voices: dict[str, list[np.ndarray]] = {}
        for path in sorted(work.glob("speed-*.npz")):
            for speaker, window in Shard.load(path).windows():
                self._voices.setdefault(f"{path.stem} {speaker}", []).append(window)
        self._teacher, self._blocks, self._seed = teacher, blocks, seed

    @property
    def voices(self) -> int:
        """A voice is one speaker at one speed."""
        return len(self._voices)

    def __call__(self, number: int) -> Lesson:
        """Crops of one length; each voice comes twice."""
        generator = Generator().manual_seed(self._seed * 1_000_003 + number)
        waves = self._crops(generator)
        rows = chosen(len(waves), TWO, generator)
        waves[rows] = mix(waves[rows], waves.roll(3, 0)[rows], Draw(len(rows), generator).uniform(*BELOW))
        fbank = features.fbank(augment(waves, waves.roll(1, 0), generator))
        rows = chosen(len(waves), WARPED, generator)
        fbank[rows] = warp(fbank[rows], Draw(len(rows), generator).uniform(-WARP, WARP))
        return self._teacher(mask(fbank, generator), self._blocks)

    def _crops(self, generator: Generator) -> Tensor:
        integer = lambda end: int(torch.randint(end, (), generator=generator))
        ratio = float(torch.rand((), generator=generator))
        frames = round(SHORTEST * (LONGEST / SHORTEST) ** ratio)
        voices = list(self._voices.values())
        chosen_ = torch.randperm(len(voices), generator=generator)[: LESSON_FRAMES // frames // 2].repeat(2)
        crops = []
        for windows in (voices[voice] for voice in chosen_):
            crops.append(crop(windows[integer(len(windows))], features.samples(frames), integer))
        return torch.from_numpy(np.stack(crops)).float() / 32768


def crop(pcm: np.ndarray, length: int, integer) -> np.ndarray:
    """The louder of two crops of a window; looped where there is too little."""
    choices = max(0, len(pcm) - length) + 1
    loudness = lambda begin: np.abs(pcm[begin : begin + length].astype(np.float32)).sum()
    begin = max(integer(choices), integer(choices), key=loudness)
    return np.resize(pcm[begin : begin + length], length)


def warp(fbank: Tensor, by: Tensor) -> Tensor:
    """Features [B, T, mels] with band `m` taken from band `m * (1 + by)`, by [B, 1]: a longer or shorter throat."""
    mels = fbank.shape[2]
    source = (torch.arange(mels) * (1 + by)).clamp(max=mels - 1.001)
    below = source.long()
    share = (source - below)[:, None]
    take = lambda band: fbank.gather(2, band[:, None].expand_as(fbank))
    return torch.lerp(take(below), take(below + 1), share.expand_as(fbank))


def mask(fbank: Tensor, generator: Generator) -> Tensor:
    """SpecAugment, lightly: up to 8 neighbouring bands of each are silenced in half of the lesson."""
    batch, _, mels = fbank.shape
    draw = lambda end: torch.randint(end, (batch, 1), generator=generator)
    width, begin, band = draw(9) * draw(2), draw(mels - 8), torch.arange(mels)
    return fbank.masked_fill(((band >= begin) & (band < begin + width))[:, None], 0.0)
