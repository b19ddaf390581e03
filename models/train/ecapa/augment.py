"""What may happen to a voice between a mouth and a model, for whole batches.

Everything linear happens at once in the frequency domain: a room, a band, a tilt.
Then come noise and hum, and at last what a cheap microphone or a line does. The
generator decides everything, so a seed gives the same batch again.
"""

import math

import torch
from recipes.common import SAMPLE_RATE
from scipy.fft import next_fast_len
from torch import Generator, Tensor

#: Longest room response.
ROOM = SAMPLE_RATE // 2


def augment(waves: Tensor, others: Tensor, generator: Generator) -> Tensor:
    """Clean waves [B, N] from -1 to 1 -> the same voices as they might be heard; `others` babble behind them."""
    size = next_fast_len(waves.shape[1] + ROOM, real=True)
    spectrum = torch.fft.rfft(waves, size)
    for chance, filters in ((0.5, rooms), (0.7, tilts), (0.15, dull), (0.1, telephone)):
        rows = chosen(len(waves), chance, generator)
        spectrum[rows] *= filters(Draw(len(rows), generator), size)
    waves = torch.fft.irfft(spectrum, size)[:, : waves.shape[1]].clone()
    for chance, noise in ((0.6, coloured), (0.25, babble), (0.1, hum)):
        rows = chosen(len(waves), chance, generator)
        draw = Draw(len(rows), generator)
        waves[rows] = mix(waves[rows], noise(draw, others), draw.uniform(3, 30))
    for chance, damage in ((0.1, clip), (0.1, compand)):
        rows = chosen(len(waves), chance, generator)
        waves[rows] = damage(waves[rows], Draw(len(rows), generator))
    return waves


def chosen(batch: int, chance: float, generator: Generator) -> Tensor:
    """The rows of a batch that something happens to."""
    return torch.nonzero(torch.rand(batch, generator=generator) < chance)[:, 0]


class Draw:
    """Random numbers, one for each of a batch, as columns [B, 1]."""

    def __init__(self, batch: int, generator: Generator):
        self.batch, self.generator = batch, generator

    def uniform(self, low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(self.batch, 1, generator=self.generator)

    def normal(self, length: int) -> Tensor:
        return torch.randn(self.batch, length, generator=self.generator)


def rooms(draw: Draw, size: int) -> Tensor:
    """Room responses: the direct sound, then noise that decays by 60 dB in 0.1 to 0.8 s.

    The direct sound is 10 dB above to 6 dB below the rest: from a headset to far-field.
    """
    seconds = torch.arange(ROOM) / SAMPLE_RATE
    tail = draw.normal(ROOM) * torch.exp(-math.log(1000) * seconds / draw.uniform(0.1, 0.8))
    tail[:, : SAMPLE_RATE // 500] = 0
    tail = tail / tail.norm(dim=1, keepdim=True) * 10 ** (draw.uniform(-10, 6) / 20)
    tail[:, 0] = 1
    return torch.fft.rfft(tail, size)


def frequencies(size: int) -> Tensor:
    """The frequencies of a spectrum in Hz."""
    return torch.fft.rfftfreq(size, 1 / SAMPLE_RATE)


def tilts(draw: Draw, size: int) -> Tensor:
    """A microphone's or a cabin's slope of up to 2 dB an octave."""
    return 10 ** (draw.uniform(-2, 2) / 20 * torch.log2((frequencies(size) + 200) / 1000))


def dull(draw: Draw, size: int) -> Tensor:
    """A microphone that hears nothing above 3.5 to 7.5 kHz."""
    return 1 / (1 + (frequencies(size) / draw.uniform(3500, 7500)) ** 6)


def telephone(draw: Draw, size: int) -> Tensor:
    """About 300 to 3,400 Hz."""
    hz = frequencies(size)
    above = 1 - 1 / (1 + (hz / draw.uniform(150, 350)) ** 6)
    return above / (1 + (hz / draw.uniform(3000, 3800)) ** 12)


def coloured(draw: Draw, others: Tensor) -> Tensor:
    """Noise from white through pink to the rumble of a car: power falls as frequency to the 0 to 2.5."""
    length = others.shape[1]
    spectrum = torch.fft.rfft(draw.normal(length))
    return torch.fft.irfft(spectrum * frequencies(length).clamp(min=40) ** -(draw.uniform(0, 2.5) / 2), length)


def babble(draw: Draw, others: Tensor) -> Tensor:
    """Three other voices at once."""
    voices = torch.randint(len(others), (3, draw.batch), generator=draw.generator)
    return others[voices].sum(dim=0)


def hum(draw: Draw, others: Tensor) -> Tensor:
    """Mains or an engine: a fundamental of 40 to 130 Hz and five falling harmonics."""
    phase = 2 * math.pi * draw.uniform(40, 130) * torch.arange(others.shape[1]) / SAMPLE_RATE
    return sum(torch.sin(k * phase) / k for k in range(1, 7))


def mix(waves: Tensor, noise: Tensor, decibels: Tensor) -> Tensor:
    """Adds noise at so many decibels below the voice."""
    level = lambda x: x.square().mean(dim=1, keepdim=True).sqrt() + 1e-9
    return waves + noise * level(waves) / level(noise) * 10 ** (-decibels / 20)


def clip(waves: Tensor, draw: Draw) -> Tensor:
    """A gain too high by 3 to 15 dB."""
    limit = waves.abs().amax(dim=1, keepdim=True) * 10 ** (-draw.uniform(3, 15) / 20)
    return torch.minimum(torch.maximum(waves, -limit), limit)


def compand(waves: Tensor, _: Draw) -> Tensor:
    """Eight bits by the mu-law, at full scale."""
    peak = waves.abs().amax(dim=1, keepdim=True) + 1e-9
    code = torch.sign(waves) * torch.log1p(255 * (waves / peak).abs()) / math.log(256)
    code = (code * 127).round() / 127
    return torch.sign(code) * torch.expm1(code.abs() * math.log(256)) / 255 * peak
