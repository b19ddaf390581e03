"""Published ECAPA-TDNN checkpoints of SpeechBrain's and WeSpeaker's form, as float ONNX.

A converted model wants the features that it was trained on; its pack's manifest
has to say which. Limits: all blocks are equally wide, and WeSpeaker's deviation,
which divides by T - 1, is taken over T.
"""

import re
from pathlib import Path

import torch
from torch import Tensor

from .graph import write
from .model import Ecapa, Shape

#: Published names of layers and ours, but for the number of a block.
SPEECHBRAIN = {
    r"blocks\.0\.(conv|norm)\.\1": r"enter.\1",
    r"blocks\.(\d+)\.tdnn1\.(conv|norm)\.\2": r"blocks.\1.enter.\2",
    r"blocks\.(\d+)\.res2net_block\.blocks\.(\d+)\.(conv|norm)\.\3": r"blocks.\1.parts.\2.\3",
    r"blocks\.(\d+)\.tdnn2\.(conv|norm)\.\2": r"blocks.\1.leave.\2",
    r"blocks\.(\d+)\.se_block\.conv1\.conv": r"blocks.\1.squeeze",
    r"blocks\.(\d+)\.se_block\.conv2\.conv": r"blocks.\1.excite",
    r"mfa\.(conv|norm)\.\1": r"aggregate.\1",
    r"asp\.tdnn\.conv\.conv": r"pool.frames",
    r"asp\.tdnn\.norm\.norm": r"pool.norm.1",
    r"asp\.conv\.conv": r"pool.scores",
    r"asp_bn\.norm": r"norm",
    r"fc\.conv": r"last",
}
WESPEAKER = {
    r"layer1\.conv": r"enter.conv",
    r"layer1\.bn": r"enter.norm",
    r"layer(\d+)\.se_res2block\.0\.conv": r"blocks.\1.enter.conv",
    r"layer(\d+)\.se_res2block\.0\.bn": r"blocks.\1.enter.norm",
    r"layer(\d+)\.se_res2block\.1\.convs\.(\d+)": r"blocks.\1.parts.\2.conv",
    r"layer(\d+)\.se_res2block\.1\.bns\.(\d+)": r"blocks.\1.parts.\2.norm",
    r"layer(\d+)\.se_res2block\.2\.conv": r"blocks.\1.leave.conv",
    r"layer(\d+)\.se_res2block\.2\.bn": r"blocks.\1.leave.norm",
    r"layer(\d+)\.se_res2block\.3\.linear1": r"blocks.\1.squeeze",
    r"layer(\d+)\.se_res2block\.3\.linear2": r"blocks.\1.excite",
    r"conv": r"aggregate.conv",
    r"pool\.linear1": r"pool.frames",
    r"pool\.linear2": r"pool.scores",
    r"bn": r"norm",
    r"linear": r"last",
}

#: Parts of WeSpeaker's Res2Net, whatever the number of channels.
WESPEAKER_SCALE = 8


def convert(checkpoint: Path, out: Path) -> None:
    """Writes the checkpoint as float ONNX with the input and output of a voiceprint."""
    student = published(torch.load(checkpoint, map_location="cpu", weights_only=True))
    write(student, out)
    print(f"{student.shape}, {sum(p.numel() for p in student.parameters())} parameters -> {out}")


def published(saved: dict) -> Ecapa:
    """The model that a checkpoint holds, at its top or one level down."""
    for tensors in (saved, *(part for part in saved.values() if isinstance(part, dict))):
        if "blocks.0.conv.conv.weight" in tensors:
            return loaded(renamed(tensors, SPEECHBRAIN, first=1), padding="reflect")
        if "layer1.conv.weight" in tensors:
            ours = renamed(tensors, WESPEAKER, first=2)
            return loaded({name: moved(name, tensor) for name, tensor in ours.items()}, padding="zeros")
    raise ValueError("neither SpeechBrain's nor WeSpeaker's ECAPA-TDNN: their first layers are not in it")


def renamed(tensors: dict[str, Tensor], names: dict[str, str], first: int) -> dict[str, Tensor]:
    """Our names; the published number of the first block is `first`."""
    ours = {}
    for name, tensor in tensors.items():
        layer, _, kind = name.rpartition(".")
        pattern = next((p for p in names if re.fullmatch(p, layer)), None)
        if pattern is None:
            raise ValueError(f"a layer of unknown purpose: {layer}")
        layer = re.sub(pattern, names[pattern], layer)
        layer = re.sub(r"^blocks\.(\d+)", lambda number: f"blocks.{int(number[1]) - first}", layer)
        ours[f"{layer}.{kind}"] = tensor
    return ours


def moved(name: str, tensor: Tensor) -> Tensor:
    """WeSpeaker's Res2Net leaves the last part as it is, ours the first: the channels go one part round."""
    if not re.fullmatch(r"blocks\.\d+\.(enter\..*|leave\.conv\.weight)", name) or not tensor.dim():
        return tensor
    axis = 1 if ".leave." in name else 0
    return tensor.roll(tensor.shape[axis] // WESPEAKER_SCALE, axis)


def loaded(ours: dict[str, Tensor], padding: str) -> Ecapa:
    """The module whose shape the tensors tell, with them in it."""
    frames, scores, enter = (ours[f"{name}.weight"] for name in ("pool.frames", "pool.scores", "enter.conv"))
    aggregated = len(scores)
    # One published convolution over frames, means and deviations; or over frames alone, without context.
    context = frames[:, aggregated:]
    ours["pool.frames.weight"] = frames[:, :aggregated]
    ours["pool.context.weight"] = context if context.numel() else frames.new_zeros(len(frames), 2 * aggregated, 1)
    shape = Shape(
        mels=enter.shape[1],
        channels=len(enter),
        aggregated=aggregated,
        attention=len(frames),
        squeeze=len(ours["blocks.0.squeeze.weight"]),
        embedding=len(ours["last.weight"]),
        scale=len(enter) // len(ours["blocks.0.parts.0.conv.weight"]),
        front=(),
        enter_kernel=enter.shape[2],
        blocks=1 + max(int(name.split(".")[1]) for name in ours if name.startswith("blocks.")),
        aggregation_kernel=ours["aggregate.conv.weight"].shape[2],
        norm_first=False,
        norm_aggregation="aggregate.norm.weight" in ours,
        norm_attention="pool.norm.1.weight" in ours,
        padding=padding,
    )
    model = Ecapa(shape)
    linear = [name for name, tensor in ours.items() if tensor.dim() == 2 and name.endswith("weight")]
    model.load_state_dict(ours | {name: ours[name].unsqueeze(2) for name in linear})
    return model.eval()
