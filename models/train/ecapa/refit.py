"""The last layer once more, in closed form, when the training is over.

Gradients get there slowly, and what is left over of a voice that the student does
not know is the mean of all voices. So: ridge regression of the teacher's embeddings
on the pooled statistics, and the mean taken off, which is affine and becomes the last
layer. Cosines are no longer the teacher's after it: a model has its own thresholds
(`calibrate.py`).
"""

from pathlib import Path

import torch
from torch import Tensor

from .fit import Heads, Watched
from .lessons import Lessons
from .model import Ecapa
from .prepare import Shard
from .teacher import Lesson, Teacher

#: Relative to the mean variance.
RIDGE = 0.3
#: Lessons, none of them one that it was trained on.
LESSONS = 200


def finish(work: Path, seed: int) -> None:
    """Refits the trained student: `student.pt` in `work` becomes `final.pt`."""
    teacher, student = Teacher(work), Ecapa()
    heads = Heads(student)
    saved = torch.load(work / "student.pt")
    student.load_state_dict(saved["student"])
    heads.load_state_dict(saved["heads"])
    blocks = len(student.front.blocks)
    lessons = Lessons(work, teacher, blocks, seed + 1)
    statistics, targets = [], []
    for number in range(LESSONS):
        print(f"\rlast layer: {number + 1} of {LESSONS}", end="", flush=True)
        lesson = lessons(number)
        statistics.append(pooled(student, lesson))
        targets.append(heads.targets(lesson.embeddings))
    print()
    watched = Watched.of(teacher, student, heads, Shard.load(work / "held-out.npz"))
    before = watched.evaluate(student)["held_out_eer"]
    refit(student, torch.cat(statistics), torch.cat(targets))
    after = watched.evaluate(student)["held_out_eer"]
    print(f"last layer in closed form: equal error rate on held-out speakers {before:.2%} -> {after:.2%}")
    torch.save(student.state_dict(), work / "final.pt")


@torch.no_grad()
def pooled(student: Ecapa, lesson: Lesson) -> Tensor:
    """What the last layer sees, [B, 2 * aggregated]."""
    student.eval()
    with torch.autocast("cpu", torch.bfloat16):
        columns = student.columns(lesson.heard)
        return student.norm(student.pool(columns)).squeeze(2).float()


@torch.no_grad()
def refit(student: Ecapa, statistics: Tensor, targets: Tensor) -> None:
    """Replaces the last layer; `statistics` are [N, 2 * aggregated], `targets` [N, embedding]."""
    # The floor is for channels that are always silent: what 8 bits make of them is noise.
    mean, deviation = statistics.mean(dim=0), statistics.std(dim=0).clamp(min=0.1)
    x = ((statistics - mean) / deviation).double()
    y = targets.double() - targets.double().mean(dim=0)
    eye = torch.eye(x.shape[1], dtype=torch.float64)
    weight = torch.linalg.solve(x.T @ x + RIDGE * len(x) * eye, x.T @ y)
    weight = weight / (x @ weight).norm(dim=1).mean()
    weight = (weight / deviation[:, None]).float()
    student.last.weight.copy_(weight.T.unsqueeze(2))
    student.last.bias.copy_(-mean @ weight)
