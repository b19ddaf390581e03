"""The ResNet34 of the voiceprint pack, and what it thinks on the way to its answer.

Its last layer weighs the mean and the deviation over time of 2,560 channels. The
same weights applied to each column of those channels say what every 80 ms adds to
the embedding: a hint of where a voice can be heard, hundreds of times as much to
learn from as the embedding alone.
"""

from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from recipes.common import MOONSHINE_VOICE, Fetcher, ort_to_onnx
from recipes.voiceprint import BLOCKS, EPSILON, FBANK, LIBRARY, Original, embedded_model
from torch import Tensor, nn
from torch.nn import functional as F

from .front import Front

#: Frames from one hint to the next.
STRIDE = 8
#: Numbers in a hint: one for each output and kind of statistics.
HINT = 512
#: The teacher as it was published, in the folder of work.
PUBLISHED = "teacher.onnx"


@dataclass(frozen=True)
class Lesson:
    """What the student begins with, [B, channels, columns], and what it should say:
    embeddings [B, 256] of length 1, and hints [B, HINT, frames / 8]."""

    heard: Tensor
    embeddings: Tensor
    hints: Tensor


class Teacher(nn.Module):
    """The whole network, without gradients."""

    def __init__(self, work: Path, downloads: Path | None = None):
        super().__init__()
        published = work / PUBLISHED
        if downloads is not None and not published.exists():
            ort_to_onnx(embedded_model(Fetcher(downloads)(MOONSHINE_VOICE).read(LIBRARY)), published)
        self.original = Original(onnx.load(published))
        self.layers = Front(BLOCKS, FBANK["mel_bins"])
        self.layers.copy(self.original)
        weight, scale, offset, bias = self.original.parameters(self.original.last_layer())
        weight = torch.from_numpy(weight.astype("float32") * scale + offset)
        of_mean, of_deviation = weight.reshape(len(bias), 2, -1).unbind(dim=1)
        self.weight, self.bias = torch.cat([of_mean, of_deviation]), torch.from_numpy(bias.copy())

    @torch.no_grad()
    def forward(self, features: Tensor, blocks: int) -> Lesson:
        """Features [B, T, mels]; the student listens through so many of the blocks."""
        with torch.autocast("cpu", torch.bfloat16):
            for block, channels in enumerate(self.layers.outputs_of(features), start=1):
                if block == blocks:
                    heard = channels
        channels = channels.float()
        mean = channels.mean(dim=2)
        energy = (channels - mean[:, :, None]).square().sum(dim=2)
        deviation = (energy / (channels.shape[2] - 1 + EPSILON)).sqrt()
        of_mean, of_deviation = self.weight.chunk(2)
        embeddings = mean @ of_mean.T + deviation @ of_deviation.T + self.bias
        return Lesson(heard, F.normalize(embeddings), self.weight @ channels)
