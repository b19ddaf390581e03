"""What may happen to a voice between a mouth and a model, for whole batches.

Everything linear happens at once in the frequency domain: a room, a band, a tilt.
Then come noise and hum, and at last what a cheap microphone or a line does. The
generator decides everything, so a seed gives the same batch again.
"""

import math

import torch
from recipes.common import SAMPLE_RATE
from torch import Generator, Tensor

#: Longest room response.
ROOM = SAMPLE_RATE // 2


def augment(waves: Tensor, others: Tensor, generator: Generator) -> Tensor:
    """Clean waves [B, N] from -1 to 1 -> the same voices as they might be heard; `others` babble behind them."""
    batch, length = waves.shape
    draw = Draw(batch, generator)
    size = 1 << (length + ROOM - 1).bit_length()
    spectrum = torch.fft.rfft(waves, size)
    spectrum = torch.where(draw.chance(0.5), spectrum * torch.fft.rfft(rooms(draw), size), spectrum)
    spectrum = spectrum * bands(draw, size)
    waves = torch.fft.irfft(spectrum, size)[:, :length]
    for noise, chance in ((coloured(draw, length), 0.6), (babble(others, draw), 0.25), (hum(draw, length), 0.1)):
        waves = torch.where(draw.chance(chance), mix(waves, noise, draw.uniform(3, 30)), waves)
    waves = torch.where(draw.chance(0.1), clip(waves, draw), waves)
    return torch.where(draw.chance(0.1), companded(waves), waves)


class Draw:
    """Random numbers, one for each of a batch, as columns [B, 1]."""

    def __init__(self, batch: int, generator: Generator):
        self.batch, self.generator = batch, generator

    def uniform(self, low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(self.batch, 1, generator=self.generator)

    def chance(self, probability: float) -> Tensor:
        return torch.rand(self.batch, 1, generator=self.generator) < probability

    def normal(self, length: int) -> Tensor:
        return torch.randn(self.batch, length, generator=self.generator)


def rooms(draw: Draw) -> Tensor:
    """Room responses [B, ROOM]: the direct sound, then noise that decays by 60 dB in 0.1 to 0.8 s.

    The direct sound is 10 dB above to 6 dB below the rest: from a headset to far-field.
    """
    seconds = torch.arange(ROOM) / SAMPLE_RATE
    tail = draw.normal(ROOM) * torch.exp(-math.log(1000) * seconds / draw.uniform(0.1, 0.8))
    tail[:, : SAMPLE_RATE // 500] = 0
    tail = tail / tail.norm(dim=1, keepdim=True) * 10 ** (draw.uniform(-10, 6) / 20)
    tail[:, 0] = 1
    return tail


def bands(draw: Draw, size: int) -> Tensor:
    """Gains [B, size/2+1]: a gentle tilt for all, a telephone's band for some, a dull microphone for others."""
    hz = torch.linspace(0, SAMPLE_RATE / 2, size // 2 + 1)
    tilt = 10 ** (draw.uniform(-6, 6) / 20 * torch.log2((hz + 200) / 1000) / 3)
    slope = lambda edge, order: (hz / edge) ** order
    highpass = 1 - 1 / (1 + slope(draw.uniform(150, 350), 6))
    lowpass = 1 / (1 + slope(draw.uniform(3000, 3800), 12))
    dull = 1 / (1 + slope(draw.uniform(3500, 7500), 6))
    telephone, muffled = draw.chance(0.1), draw.chance(0.15)
    return tilt * torch.where(telephone, highpass * lowpass, torch.where(muffled, dull, torch.ones(1)))


def coloured(draw: Draw, length: int) -> Tensor:
    """Noise from white through pink to the rumble of a car: power falls as frequency to the 0 to 2.5."""
    spectrum = torch.fft.rfft(draw.normal(length))
    hz = torch.linspace(0, SAMPLE_RATE / 2, spectrum.shape[1]).clamp(min=40)
    return torch.fft.irfft(spectrum * hz ** -(draw.uniform(0, 2.5) / 2), length)


def babble(others: Tensor, draw: Draw) -> Tensor:
    """Three other voices at once."""
    shifts = torch.randint(1, len(others), (3,), generator=draw.generator)
    return sum(others.roll(int(shift), 0) for shift in shifts)


def hum(draw: Draw, length: int) -> Tensor:
    """Mains or an engine: a fundamental of 40 to 130 Hz and five falling harmonics."""
    phase = 2 * math.pi * draw.uniform(40, 130) * torch.arange(length) / SAMPLE_RATE
    return sum(torch.sin(k * phase) / k for k in range(1, 7))


def mix(waves: Tensor, noise: Tensor, decibels: Tensor) -> Tensor:
    """Adds noise at so many decibels below the voice."""
    level = lambda x: x.square().mean(dim=1, keepdim=True).sqrt() + 1e-9
    return waves + noise * level(waves) / level(noise) * 10 ** (-decibels / 20)


def clip(waves: Tensor, draw: Draw) -> Tensor:
    """A gain too high by 3 to 15 dB."""
    limit = waves.abs().amax(dim=1, keepdim=True) * 10 ** (-draw.uniform(3, 15) / 20)
    return torch.minimum(torch.maximum(waves, -limit), limit)


def companded(waves: Tensor) -> Tensor:
    """Eight bits by the mu-law, at full scale."""
    peak = waves.abs().amax(dim=1, keepdim=True) + 1e-9
    code = torch.sign(waves) * torch.log1p(255 * (waves / peak).abs()) / math.log(256)
    code = (code * 127).round() / 127
    return torch.sign(code) * torch.expm1(code.abs() * math.log(256)) / 255 * peak
