"""Trains the student to agree with the teacher (Beyer et al., 2022, arXiv:2106.05237: patiently and consistently).

The loss has three parts: the distance between both embeddings, the distance between
both tables of similarities within a lesson, and the distance to the teacher's hints,
column by column, without which there would be one thing to learn from in two seconds
of speech. Step `n` depends on the seed and `n` alone, so a run that was stopped goes
on as if it had not been.
"""

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from recipes.common import SAMPLE_RATE
from torch import Tensor, nn
from torch.nn import functional as F

from . import features
from .lessons import Lessons
from .measure import Turns, eer
from .model import Ecapa
from .prepare import Shard
from .teacher import HINT, STRIDE, Lesson, Teacher

PEAK_RATE, WEIGHT_DECAY = 2e-3, 0.02
#: Steps in which the rate rises, and the share of all in which it falls to nothing.
WARM_UP, FALL = 200, 0.35
RELATION, HINTS = 5.0, 1.0
#: Lessons that basis and scale of the targets are found on.
FIRST = 24
#: Steps for each lesson that is made, and how many lessons are kept.
REUSE, KEPT = 8, 48
EVERY = 400


class Heads(nn.Module):
    """What only the training needs: a guess at the hints, and what the teacher's answers are measured by."""

    def __init__(self, student: Ecapa):
        super().__init__()
        shape = student.shape
        self.hints = nn.Conv1d(shape.aggregated, HINT, 1)
        self.register_buffer("basis", torch.zeros(HINT // 2, shape.embedding))
        self.register_buffer("mean", torch.zeros(HINT, 1))
        self.register_buffer("deviation", torch.ones(HINT, 1))

    def measure(self, lessons: list[Lesson]) -> None:
        """Finds the directions [256, embedding] that keep most of the teacher, not centred, so that cosines
        stay; and mean and deviation of the hints."""
        embeddings = torch.cat([lesson.embeddings for lesson in lessons])
        _, strengths, directions = torch.linalg.svd(embeddings, full_matrices=False)
        width = self.basis.shape[1]
        kept = (strengths[:width] ** 2).sum() / (strengths**2).sum()
        print(f"{width} of {HINT // 2} dimensions keep {kept:.4f} of the teacher", flush=True)
        self.basis.copy_(directions[:width].T)
        hints = torch.cat([lesson.hints.transpose(0, 1).flatten(1) for lesson in lessons], dim=1)
        self.mean.copy_(hints.mean(dim=1, keepdim=True))
        self.deviation.copy_(hints.std(dim=1, keepdim=True))

    def targets(self, embeddings: Tensor) -> Tensor:
        """The teacher's embeddings in the student's dimensions."""
        return F.normalize(embeddings @ self.basis)


def losses(student: Ecapa, heads: Heads, lesson: Lesson) -> dict[str, Tensor]:
    """The parts of the loss, weighted."""
    with torch.autocast("cpu", torch.bfloat16):
        columns = student.columns(lesson.heard)
        guesses = heads.hints(columns[:, :, :: STRIDE // student.stride])
        embeddings = student.embed(columns)
    embeddings, targets = F.normalize(embeddings.float()), heads.targets(lesson.embeddings)
    others = ~torch.eye(len(targets), dtype=torch.bool)
    relation = (embeddings @ embeddings.T - targets @ targets.T)[others].square().mean()
    hints = (lesson.hints - heads.mean) / heads.deviation
    return {
        "distance": (1 - (embeddings * targets).sum(dim=1)).mean(),
        "relation": RELATION * relation,
        "hints": HINTS * (guesses.float() - hints).square().mean(),
    }


def rate(step: int, steps: int) -> float:
    """Up, level, down: until it falls, the rate does not depend on how many steps there will be."""
    return PEAK_RATE * min(1.0, (step + 1) / WARM_UP, (steps - step) / (FALL * steps))


def fit(work: Path, steps: int, seed: int) -> None:
    """Trains to `steps`, from the last checkpoint if there is one; `student.pt` in `work` is the result.

    As long as the rate has not begun to fall, `steps` may become another number at
    a restart: the result is what it would have been with that number from the start.
    """
    torch.manual_seed(seed)
    teacher, student = Teacher(work), Ecapa()
    student.front.copy(teacher.original)
    heads = Heads(student)
    lessons = Lessons(work, teacher, len(student.front.blocks), seed)
    trained = [p for p in (*student.parameters(), *heads.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, weight_decay=WEIGHT_DECAY)
    path = work / "student.pt"
    step, history = 0, []
    if path.exists():
        saved = torch.load(path)
        student.load_state_dict(saved["student"])
        heads.load_state_dict(saved["heads"])
        optimizer.load_state_dict(saved["optimizer"])
        step, history = saved["step"], saved["history"]
    else:
        heads.measure([lessons(number) for number in range(FIRST)])
    watched = Watched.of(teacher, student, heads, Shard.load(work / "held-out.npz"))
    print(f"{lessons.voices} voices, from step {step} to {steps}", flush=True)
    sums: dict[str, float] = {}
    for lesson in course(lessons, seed, step, steps):
        optimizer.param_groups[0]["lr"] = rate(step, steps)
        for name, value in train_step(student, heads, optimizer, lesson).items():
            sums[name] = sums.get(name, 0.0) + value
        step += 1
        if step % EVERY == 0 or step == steps:
            done = (step - 1) % EVERY + 1
            history.append({"step": step, **{n: s / done for n, s in sums.items()}, **watched.evaluate(student)})
            sums = {}
            print(" ".join(f"{n} {v:.4g}" for n, v in history[-1].items()), flush=True)
            state = {"student": student, "heads": heads, "optimizer": optimizer}
            saved = {name: part.state_dict() for name, part in state.items()}
            torch.save({**saved, "step": step, "history": history}, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").replace(path)
            (work / "history.json").write_text(json.dumps(history))


def course(lesson: Callable[[int], Lesson], seed: int, first: int, end: int) -> Iterator[Lesson]:
    """A lesson for each step.

    To make one takes longer than the step that follows, so one is made for every
    `REUSE`th step only, and a step takes any of the last `KEPT`. They are made one
    ahead in a thread of their own.
    """
    newest = first // REUSE
    kept = {number: lesson(number) for number in range(max(0, newest - KEPT + 1), newest + 1)}
    with ThreadPoolExecutor(1) as ahead:
        made = ahead.submit(lesson, newest + 1)
        for step in range(first, end):
            if step // REUSE > newest:
                newest += 1
                kept[newest] = made.result()
                kept.pop(newest - KEPT, None)
                made = ahead.submit(lesson, newest + 1)
            yield kept[newest - random.Random(f"{seed} {step}").randrange(len(kept))]


def train_step(student: Ecapa, heads: Heads, optimizer, lesson: Lesson) -> dict[str, float]:
    """One step; gives the parts of the loss."""
    student.train()
    parts = losses(student, heads, lesson)
    optimizer.zero_grad()
    sum(parts.values()).backward()
    nn.utils.clip_grad_norm_([*student.parameters(), *heads.parameters()], 5.0)
    optimizer.step()
    return {name: part.item() for name, part in parts.items()}


@dataclass(frozen=True)
class Watched:
    """Held-out windows of a second and a half and more, as the trained part hears them."""

    lessons: list[Lesson]
    targets: Tensor
    speakers: np.ndarray

    @staticmethod
    def of(teacher: Teacher, student: Ecapa, heads: Heads, held_out: Shard) -> "Watched":
        windows = [(speaker, pcm) for speaker, pcm in held_out.windows() if len(pcm) >= 1.5 * SAMPLE_RATE]
        lessons = [teacher(features.of(pcm), len(student.front.blocks)) for _, pcm in windows]
        targets = heads.targets(torch.cat([lesson.embeddings for lesson in lessons]))
        speakers = np.array([speaker for speaker, _ in windows])
        print(f"the teacher's equal error rate: {eer(*Turns(targets.numpy(), speakers).trials()):.4f}", flush=True)
        return Watched(lessons, targets, speakers)

    @torch.no_grad()
    def evaluate(self, student: Ecapa) -> dict[str, float]:
        """Equal error rate, and cosine to the teacher."""
        student.eval()
        embed = lambda lesson: F.normalize(student.embed(student.columns(lesson.heard.float())))[0]
        embeddings = torch.stack([embed(lesson) for lesson in self.lessons])
        return {
            "held_out_eer": eer(*Turns(embeddings.numpy(), self.speakers).trials()),
            "held_out_cosine": float((embeddings * self.targets).sum(dim=1).mean()),
        }
