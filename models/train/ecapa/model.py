"""ECAPA-TDNN (Desplanques et al., 2020, arXiv:2005.07143), from features to voiceprint.

Three choices are ours, each a field of `Shape`, so that published checkpoints load
into the same modules: the teacher's first layers come before (`front.py`), which also
leave every second frame; normalisation comes before the ReLU, where it folds into the
convolution exactly; and Res2Net splits into four parts instead of eight.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .front import Front

#: Smallest variance whose root is taken.
FLOOR = 1e-6


@dataclass(frozen=True)
class Shape:
    """Sizes and the order of things; the defaults are what this project trains."""

    mels: int = 80
    #: Residual blocks in each of the teacher's layers that come first; none in the published network.
    front: tuple[int, ...] = (3, 4, 6)
    channels: int = 128
    #: Width of the first kernel over time.
    enter_kernel: int = 1
    #: Channels after the multi-layer aggregation, which statistics are taken of.
    aggregated: int = 384
    attention: int = 96
    squeeze: int = 64
    embedding: int = 192
    scale: int = 4
    #: Their kernels are 3 wide and dilated by 2, 3, 4 ...
    blocks: int = 3
    aggregation_kernel: int = 1
    norm_first: bool = True
    #: Whether aggregation and attention are normalised too.
    norm_aggregation: bool = True
    norm_attention: bool = False
    padding: str = "zeros"


class Tdnn(nn.Module):
    """Convolution over time, normalisation and ReLU, in the order of `Shape.norm_first`."""

    def __init__(self, shape: Shape, inputs: int, outputs: int, kernel=1, dilation=1, norm=True):
        super().__init__()
        padding = dilation * (kernel - 1) // 2
        mode = shape.padding if padding else "zeros"
        self.conv = nn.Conv1d(inputs, outputs, kernel, 1, padding, dilation, padding_mode=mode)
        self.norm = nn.BatchNorm1d(outputs) if norm else nn.Identity()
        self.norm_first = shape.norm_first

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return F.relu(self.norm(x)) if self.norm_first else self.norm(F.relu(x))


class Block(nn.Module):
    """Res2Net between two 1x1 convolutions, squeeze and excitation, and a shortcut."""

    def __init__(self, shape: Shape, dilation: int):
        super().__init__()
        channels, part = shape.channels, shape.channels // shape.scale
        self.enter = Tdnn(shape, channels, channels)
        self.parts = nn.ModuleList(Tdnn(shape, part, part, 3, dilation) for _ in range(shape.scale - 1))
        self.leave = Tdnn(shape, channels, channels)
        self.squeeze = nn.Conv1d(channels, shape.squeeze, 1)
        self.excite = nn.Conv1d(shape.squeeze, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        first, second, *others = self.enter(x).chunk(len(self.parts) + 1, dim=1)
        done = [first, self.parts[0](second)]
        for part, inputs in zip(self.parts[1:], others):
            done.append(part(inputs + done[-1]))
        y = self.leave(torch.cat(done, dim=1))
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(y.mean(dim=2, keepdim=True)))))
        return x + y * gate


class Pooling(nn.Module):
    """Mean and deviation over time, weighted by attention that sees the plain mean and deviation.

    The published layer joins frames and context before one convolution; here each
    has its own, which is the same sum and a third of the work.
    """

    def __init__(self, shape: Shape):
        super().__init__()
        self.frames = nn.Conv1d(shape.aggregated, shape.attention, 1)
        self.context = nn.Conv1d(2 * shape.aggregated, shape.attention, 1, bias=False)
        self.norm = nn.Sequential(nn.ReLU(), nn.BatchNorm1d(shape.attention)) if shape.norm_attention else nn.Identity()
        self.scores = nn.Conv1d(shape.attention, shape.aggregated, 1)

    def forward(self, x: Tensor) -> Tensor:
        even = torch.full_like(x[:, :1], 1 / x.shape[2])
        hidden = self.frames(x) + self.context(statistics(x, even))
        weights = torch.softmax(self.scores(torch.tanh(self.norm(hidden))).float(), dim=2)
        return statistics(x.float(), weights)


def statistics(x: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean and deviation over time: [B, C, T] -> [B, 2C, 1]."""
    mean = (weights * x).sum(dim=2, keepdim=True)
    variance = (weights * (x - mean).square()).sum(dim=2, keepdim=True)
    return torch.cat([mean, variance.clamp(min=FLOOR).sqrt()], dim=1)


class Ecapa(nn.Module):
    """Features [B, T, mels] -> embedding [B, embedding], not normalised."""

    def __init__(self, shape: Shape = Shape()):
        super().__init__()
        self.shape = shape
        self.front = Front(shape.front, shape.mels) if shape.front else None
        inputs = self.front.outputs if self.front else shape.mels
        self.enter = Tdnn(shape, inputs, shape.channels, shape.enter_kernel)
        self.blocks = nn.ModuleList(Block(shape, 2 + index) for index in range(shape.blocks))
        self.aggregate = Tdnn(
            shape,
            shape.blocks * shape.channels,
            shape.aggregated,
            shape.aggregation_kernel,
            dilation=2 + shape.blocks if shape.aggregation_kernel > 1 else 1,
            norm=shape.norm_aggregation,
        )
        self.pool = Pooling(shape)
        self.norm = nn.BatchNorm1d(2 * shape.aggregated)
        self.last = nn.Conv1d(2 * shape.aggregated, shape.embedding, 1)

    @property
    def stride(self) -> int:
        """Frames for one column."""
        return self.front.stride if self.front else 1

    def forward(self, features: Tensor) -> Tensor:
        return self.embed(self.columns(self.hear(features)))

    def hear(self, features: Tensor) -> Tensor:
        """What the trained part begins with: features [B, T, mels] -> [B, channels, T / stride]."""
        return self.front(features) if self.front else features.transpose(1, 2)

    def columns(self, heard: Tensor) -> Tensor:
        """What statistics are taken of: [B, aggregated, T / stride]."""
        x = self.enter(heard)
        outputs = []
        for block in self.blocks:
            x = block(x)
            outputs.append(x)
        return self.aggregate(torch.cat(outputs, dim=1))

    def embed(self, columns: Tensor) -> Tensor:
        """The embedding of columns."""
        return self.last(self.norm(self.pool(columns))).squeeze(2)
