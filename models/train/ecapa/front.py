"""The teacher's own first layers, which the student listens through.

A network that has met a few hundred voices does not learn by itself what an edge in
a spectrogram is; the teacher learned it from thousands. So the student keeps the
teacher's first three layers as they are and puts an ECAPA-TDNN where the fourth
was, as the ECAPA CNN-TDNN (Thienpondt et al., 2021, arXiv:2104.02370) puts
convolutions in two dimensions before one in one. Nothing here is trained.
"""

from collections.abc import Iterator

import torch
from recipes.voiceprint import Original
from torch import Tensor, nn
from torch.nn import functional as F

#: Channels after the first layer; each further one doubles them and halves bands and frames.
WIDTH = 32


class Convolution(nn.Module):
    """3x3 or 1x1 with a bias; the normalisation was folded in before it was published."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1):
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(outputs, inputs, kernel, kernel), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(outputs), requires_grad=False)

    def copy(self, original: Original, name: str) -> None:
        weight, scale, offset, bias = original.parameters(original.convolution(name))
        self.weight.copy_(torch.from_numpy(weight.astype("float32") * scale + offset))
        self.bias.copy_(torch.from_numpy(bias.copy()))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.weight.shape[2] // 2)


class Residual(nn.Module):
    """Two convolutions, around which the input goes."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = Convolution(inputs, outputs, stride=stride)
        self.conv2 = Convolution(outputs, outputs)
        self.shortcut = None if inputs == outputs else Convolution(inputs, outputs, kernel=1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.conv2(F.relu(self.conv1(x))) + around)


class Front(nn.Module):
    """Features [B, T, mels] -> channels [B, channels * bands, T / stride], none of them negative.

    `blocks` says how many residual blocks of each of the teacher's layers there are.
    """

    def __init__(self, blocks: tuple[int, ...], mels: int):
        super().__init__()
        self.conv1 = Convolution(1, WIDTH)
        self.blocks = nn.ModuleList()
        #: What the teacher calls them.
        self.names = [f"layer{layer}.{block}" for layer, count in enumerate(blocks, start=1) for block in range(count)]
        inputs = WIDTH
        for name in self.names:
            layer, block = (int(number) for number in name.removeprefix("layer").split("."))
            outputs = WIDTH << (layer - 1)
            self.blocks.append(Residual(inputs, outputs, stride=2 if block == 0 and layer > 1 else 1))
            inputs = outputs
        self.stride = 1 << (len(blocks) - 1)
        self.outputs = inputs * mels // self.stride

    def forward(self, features: Tensor) -> Tensor:
        *_, last = self.outputs_of(features)
        return last

    def outputs_of(self, features: Tensor) -> Iterator[Tensor]:
        """What every block gives, one after the other."""
        image = features.transpose(1, 2).unsqueeze(1)
        x = F.relu(self.conv1(image.contiguous(memory_format=torch.channels_last)))
        for block in self.blocks:
            x = block(x)
            yield x.flatten(1, 2)

    @torch.no_grad()
    def copy(self, original: Original) -> None:
        """Takes over the teacher's weights."""
        self.conv1.copy(original, "conv1")
        for name, block in zip(self.names, self.blocks):
            name = f"{name.split('.')[0]}/{name}"
            block.conv1.copy(original, f"{name}/conv1")
            block.conv2.copy(original, f"{name}/conv2")
            if block.shortcut is not None:
                block.shortcut.copy(original, f"{name}/shortcut/shortcut.0")
        self.to(memory_format=torch.channels_last)
