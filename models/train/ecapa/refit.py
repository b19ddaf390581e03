"""The last layer once more, in closed form, when the training is over.

Gradients get there slowly, and what is left over of a voice that the student does
not know is the mean of all voices. So: ridge regression of the teacher's embeddings
on the pooled statistics; the mean taken off; and directions in which one voice
varies shrunk (within-class covariance normalisation, Hatch et al., 2006). All of it
is affine and becomes the last layer. Cosines are no longer the teacher's after it:
a model has its own thresholds (`calibrate.py`).
"""

from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from .fit import batches, evaluate, load
from .model import Ecapa

#: Ridge and shrinkage, relative to the mean variance.
RIDGE, SHRINKAGE = 3.0, 0.3
#: Batches of what the student hears, none of them one that it was trained on.
BATCHES = 300


def finish(work: Path, seed: int) -> None:
    """Refits the trained student: `student.pt` in `work` becomes `final.pt`."""
    corpus, held_out, basis = load(work)
    student = Ecapa()
    student.load_state_dict(torch.load(work / "student.pt")["student"])
    made = [(pooled(student, heard), batch.targets, batch.voices) for heard, batch in batches(corpus, seed + 1, 0, BATCHES)]
    before = evaluate(student, held_out, basis)["held_out_eer"]
    refit(student, *map(torch.cat, zip(*made)))
    after = evaluate(student, held_out, basis)["held_out_eer"]
    print(f"last layer in closed form: equal error rate on held-out speakers {before:.2%} -> {after:.2%}")
    torch.save(student.state_dict(), work / "final.pt")


@torch.no_grad()
def pooled(student: Ecapa, heard: Tensor) -> Tensor:
    """What the last layer sees, [B, 2 * aggregated]."""
    student.eval()
    with torch.autocast("cpu", torch.bfloat16):
        columns = student.columns(heard)
        return student.norm(student.pool(columns)).squeeze(2).float()


@torch.no_grad()
def refit(student: Ecapa, statistics: Tensor, targets: Tensor, voices: Tensor) -> None:
    """Replaces the last layer; `statistics` [N, 2 * aggregated] are of crops of `voices` [N], `targets` the teacher's."""
    # The floor is for channels that are always silent: what 8 bits make of them is noise.
    mean, deviation = statistics.mean(dim=0), statistics.std(dim=0).clamp(min=0.1)
    x = ((statistics - mean) / deviation).double()
    centre = targets.double().mean(dim=0)
    eye = torch.eye(x.shape[1], dtype=torch.float64)
    weight = torch.linalg.solve(x.T @ x + RIDGE * len(x) * eye, x.T @ (targets.double() - centre))
    weight = weight @ whitening(x @ weight, voices)
    weight = weight / (x @ weight).norm(dim=1).mean()
    weight = (weight / deviation[:, None]).float()
    student.last.weight.copy_(weight.T.unsqueeze(2))
    student.last.bias.copy_(-mean @ weight)


def whitening(embeddings: Tensor, voices: Tensor) -> Tensor:
    """The matrix after which one voice varies alike in all directions."""
    ones = F.one_hot(voices).to(embeddings)
    means = (ones.T @ embeddings) / ones.sum(dim=0).clamp(min=1)[:, None]
    apart = embeddings - means[voices]
    covariance = apart.T @ apart / len(apart)
    shrunk = covariance + SHRINKAGE * covariance.diagonal().mean() * torch.eye(len(covariance)).to(covariance)
    values, vectors = torch.linalg.eigh(shrunk)
    return vectors @ torch.diag(values.rsqrt()) @ vectors.T
