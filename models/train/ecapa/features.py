"""The front end of the voiceprint packs, for whole batches: log mel energies as Kaldi computes them.

The pack recipe's `fbank` is the definition; `check` holds this one against it.
"""

import functools

import numpy as np
import torch
from recipes.common import SAMPLE_RATE
from recipes.voiceprint import FBANK, INT16_SCALE, fbank as reference

WINDOW = 400
SHIFT = 160
FFT = 512
MELS = FBANK["mel_bins"]
FLOOR = float(np.finfo(np.float32).eps)


def fbank(waves: torch.Tensor) -> torch.Tensor:
    """Waves [B, N] from -1 to 1 -> features [B, T, 80] with the mean over time removed."""
    frames = (waves * INT16_SCALE).unfold(1, WINDOW, SHIFT)
    frames = frames - frames.mean(dim=2, keepdim=True)
    before = torch.cat([frames[..., :1], frames[..., :-1]], dim=2)
    frames = (frames - FBANK["preemphasis"] * before) * _window()
    power = torch.fft.rfft(frames, FFT).abs().square()
    features = (power @ _mel_bank()).clamp(min=FLOOR).log()
    return features - features.mean(dim=1, keepdim=True)


def of(pcm: np.ndarray) -> torch.Tensor:
    """int16 samples -> features [1, T, 80]."""
    return fbank(torch.from_numpy(pcm.astype(np.float32) / INT16_SCALE)[None])


def samples(frames: int) -> int:
    """How many samples give so many frames."""
    return WINDOW + (frames - 1) * SHIFT


def check(pcm: np.ndarray) -> None:
    """Refuses to go on if these features are not the pack's."""
    ours = of(pcm)[0].numpy()
    error = np.abs(ours - reference(pcm)).max()
    if error > 0.05:
        raise AssertionError(f"the batch front end strays from the pack's by {error:.3f}")


@functools.cache
def _window() -> torch.Tensor:
    return torch.hamming_window(WINDOW, periodic=False)


@functools.cache
def _mel_bank() -> torch.Tensor:
    """Triangles in the mel domain, [257, 80]."""
    mel = lambda hz: 1127.0 * np.log(1.0 + hz / 700.0)
    edges = np.linspace(mel(FBANK["low_hz"]), mel(SAMPLE_RATE / 2), MELS + 2)
    bins = mel(np.arange(FFT // 2 + 1) * SAMPLE_RATE / FFT)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return torch.from_numpy(np.maximum(0, np.minimum(rising, falling)).astype(np.float32))
