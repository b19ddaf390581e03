"""Trains the student: it hears a voice through noise and room, and answers what the teacher said of the clean one.

The loss has four parts: the distance to the teacher's embedding, the distance
between both tables of similarities within a batch, the angular margin (AAM)
between voices, and the distance to the teacher's hints, column by column, without
which there would be one thing to learn from in two seconds of speech. Step `n`
depends on the seed and `n` alone, so a run that was stopped goes on as if it had
not been.
"""

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import features
from .augment import augment
from .measure import Turns, eer
from .model import Ecapa, Shape
from .prepare import SAMPLE_RATE, Shard
from .teacher import HINT, STRIDE

#: Frames in a crop, and in all the crops of a batch.
SHORTEST, LONGEST = 60, 296
BATCH_FRAMES = 6_000
#: How much of a target is the window's own embedding; the rest is the voice's mean.
OWN = 0.5
PEAK_RATE, WEIGHT_DECAY = 2e-3, 0.02
#: Steps in which the rate rises, and the share of all in which it falls to nothing.
WARM_UP, FALL = 200, 0.35
RELATION, ANGULAR, HINTS = 5.0, 0.01, 1.0
MARGIN, SCALE = 0.2, 30.0
EVERY = 400


@dataclass(frozen=True)
class Batch:
    """Clean waves [B, N], targets [B, D], voices [B], hints [B, HINT, columns] and which columns have one, [B, 1, columns]."""

    waves: Tensor
    targets: Tensor
    voices: Tensor
    hints: Tensor
    hinted: Tensor


class Corpus:
    """Crops to train on. A voice is one speaker at one speed."""

    def __init__(self, shards: list[Shard], basis: Tensor):
        self.windows: list[tuple[np.ndarray, np.ndarray]] = []
        self._of_voice, targets = [], []
        for shard in shards:
            of_window = shard.speakers[shard.utterances]
            for speaker in dict.fromkeys(shard.speakers):
                members = np.flatnonzero(of_window == speaker)
                self._of_voice.append(range(len(self.windows), len(self.windows) + len(members)))
                self.windows += [(shard.window(m), shard.hint(m)) for m in members]
                own = torch.from_numpy(shard.embeddings[members])
                targets.append(OWN * own + (1 - OWN) * F.normalize(own.mean(dim=0), dim=0))
        self._targets = F.normalize(torch.cat(targets) @ basis)
        sample = np.concatenate([hint for _, hint in self.windows[::20]]).astype(np.float32)
        self._mean, self._deviation = sample.mean(axis=0), sample.std(axis=0)
        self.voices = len(self._of_voice)

    def batch(self, generator: torch.Generator) -> Batch:
        """Crops of one length; each voice comes twice."""
        integer = lambda end: int(torch.randint(end, (), generator=generator))
        ratio = float(torch.rand((), generator=generator))
        frames = round(SHORTEST * (LONGEST / SHORTEST) ** ratio)
        voices = torch.randperm(self.voices, generator=generator)[: BATCH_FRAMES // frames // 2].repeat(2)
        windows = [self._of_voice[voice][integer(len(self._of_voice[voice]))] for voice in voices]
        waves, hints = zip(*(self._crop(*self.windows[window], frames, integer) for window in windows))
        hints = torch.from_numpy(np.stack(hints)).transpose(1, 2)
        hinted = ~hints[:, :1].isnan()
        waves = torch.from_numpy(np.stack(waves)).float() / 32768
        return Batch(waves, self._targets[windows], voices, hints.nan_to_num(), hinted)

    def _crop(self, pcm: np.ndarray, hints: np.ndarray, frames: int, integer) -> tuple[np.ndarray, np.ndarray]:
        """The louder of two crops of a window, and its hints; looped, and without hints, where there is too little."""
        length, columns = features.samples(frames), -(-frames // STRIDE)
        step = STRIDE * features.SHIFT
        choices = max(0, len(pcm) - length) // step + 1
        begin = max(integer(choices), integer(choices), key=lambda b: np.abs(pcm[b * step :][:length].astype(np.float32)).sum())
        own = (hints[begin : begin + columns].astype(np.float32) - self._mean) / self._deviation
        missing = np.full((columns - len(own), HINT), np.nan, np.float32)
        return np.resize(pcm[begin * step :][:length], length), np.concatenate([own, missing])


def projection(embeddings: np.ndarray, width: int) -> Tensor:
    """The `width` directions [256, width] that keep most of the teacher; not centred, so that cosines stay."""
    _, strengths, directions = np.linalg.svd(embeddings, full_matrices=False)
    kept = (strengths[:width] ** 2).sum() / (strengths**2).sum()
    print(f"{width} of {embeddings.shape[1]} dimensions keep {kept:.4f} of the teacher")
    return torch.from_numpy(np.ascontiguousarray(directions[:width].T))


class Angular(nn.Module):
    """Additive angular margin between voices (Deng et al., 2019)."""

    def __init__(self, width: int, voices: int):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(voices, width) / math.sqrt(width))

    def forward(self, embeddings: Tensor, voices: Tensor) -> Tensor:
        cosines = embeddings @ F.normalize(self.centres).T
        own = cosines.gather(1, voices[:, None]).clamp(-1 + 1e-6, 1 - 1e-6)
        narrowed = torch.cos(torch.acos(own) + MARGIN)
        # Past a half turn the cosine would rise again; there the margin is taken off it.
        narrowed = torch.where(own > -math.cos(MARGIN), narrowed, own - MARGIN * math.sin(MARGIN))
        return F.cross_entropy(SCALE * cosines.scatter(1, voices[:, None], narrowed), voices)


class Heads(nn.Module):
    """What only the training needs."""

    def __init__(self, shape: Shape, voices: int):
        super().__init__()
        self.angular = Angular(shape.embedding, voices)
        self.hints = nn.Conv1d(shape.aggregated, HINT, 1)


def losses(student: Ecapa, heads: Heads, heard: Tensor, batch: Batch) -> dict[str, Tensor]:
    """The parts of the loss, weighted."""
    with torch.autocast("cpu", torch.bfloat16):
        columns = student.columns(heard)
        hints = heads.hints(columns[:, :, :: STRIDE // student.shape.stride])
        embeddings = student.embed(columns)
    embeddings = F.normalize(embeddings.float())
    others = ~torch.eye(len(batch.targets), dtype=torch.bool)
    relation = (embeddings @ embeddings.T - batch.targets @ batch.targets.T)[others].square().mean()
    missed = ((hints.float() - batch.hints).square() * batch.hinted).sum() / (batch.hinted.sum() * HINT)
    return {
        "distance": (1 - (embeddings * batch.targets).sum(dim=1)).mean(),
        "relation": RELATION * relation,
        "angular": ANGULAR * heads.angular(embeddings, batch.voices),
        "hints": HINTS * missed,
    }


def rate(step: int, steps: int) -> float:
    """Up, level, down: until it falls, the rate does not depend on how many steps there will be."""
    return PEAK_RATE * min(1.0, (step + 1) / WARM_UP, (steps - step) / (FALL * steps))


def load(work: Path) -> tuple[Corpus, Shard, Tensor]:
    """What to train on, what to watch, and the basis of the targets."""
    shards = [Shard.load(path) for path in sorted(work.glob("speed-*.npz"))]
    basis = projection(np.concatenate([shard.embeddings for shard in shards]), Shape().embedding)
    return Corpus(shards, basis), Shard.load(work / "held-out.npz"), basis


def fit(work: Path, steps: int, seed: int) -> None:
    """Trains to `steps`, from the last checkpoint if there is one; `student.pt` in `work` is the result.

    As long as the rate has not begun to fall, `steps` may become another number at
    a restart: the result is what it would have been with that number from the start.
    """
    torch.manual_seed(seed)
    student = Ecapa()
    corpus, held_out, basis = load(work)
    heads = Heads(student.shape, corpus.voices)
    optimizer = torch.optim.AdamW([*student.parameters(), *heads.parameters()], weight_decay=WEIGHT_DECAY)
    path = work / "student.pt"
    step, history = 0, []
    if path.exists():
        saved = torch.load(path)
        student.load_state_dict(saved["student"])
        heads.load_state_dict(saved["heads"])
        optimizer.load_state_dict(saved["optimizer"])
        step, history = saved["step"], saved["history"]
    print(f"{corpus.voices} voices, {len(corpus.windows)} windows, from step {step} to {steps}", flush=True)
    sums: dict[str, float] = {}
    for heard, batch in batches(corpus, seed, step, steps):
        optimizer.param_groups[0]["lr"] = rate(step, steps)
        for name, value in train_step(student, heads, optimizer, heard, batch).items():
            sums[name] = sums.get(name, 0.0) + value
        step += 1
        if step % EVERY == 0 or step == steps:
            done = (step - 1) % EVERY + 1
            history.append({"step": step, **{n: s / done for n, s in sums.items()}, **evaluate(student, held_out, basis)})
            sums = {}
            print(" ".join(f"{n} {v:.4g}" for n, v in history[-1].items()), flush=True)
            state = {"student": student, "heads": heads, "optimizer": optimizer}
            saved = {name: part.state_dict() for name, part in state.items()}
            torch.save({**saved, "step": step, "history": history}, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").replace(path)
            (work / "history.json").write_text(json.dumps(history))


def batches(corpus: Corpus, seed: int, first: int, end: int) -> Iterator[tuple[Tensor, Batch]]:
    """What the student hears at each step, with what it should say; made one step ahead in a thread of its own."""

    def make(step: int) -> tuple[Tensor, Batch]:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        batch = corpus.batch(generator)
        waves = augment(batch.waves, batch.waves.roll(1, 0), generator)
        return mask(features.fbank(waves), generator), batch

    with ThreadPoolExecutor(1) as ahead:
        made = ahead.submit(make, first)
        for step in range(first, end):
            ready, made = made.result(), ahead.submit(make, min(step + 1, end - 1))
            yield ready


def train_step(student: Ecapa, heads: Heads, optimizer, heard: Tensor, batch: Batch) -> dict[str, float]:
    """One step; gives the parts of the loss."""
    student.train()
    parts = losses(student, heads, heard, batch)
    optimizer.zero_grad()
    sum(parts.values()).backward()
    nn.utils.clip_grad_norm_(student.parameters(), 5.0)
    optimizer.step()
    return {name: part.item() for name, part in parts.items()}


def mask(heard: Tensor, generator: torch.Generator) -> Tensor:
    """SpecAugment, lightly: up to 8 neighbouring bands of each are silenced in half of the batch."""
    batch, _, mels = heard.shape
    draw = lambda end: torch.randint(end, (batch, 1), generator=generator)
    width, begin, band = draw(9) * draw(2), draw(mels - 8), torch.arange(mels)
    return heard.masked_fill(((band >= begin) & (band < begin + width))[:, None], 0.0)


@torch.no_grad()
def evaluate(student: Ecapa, held_out: Shard, basis: Tensor) -> dict[str, float]:
    """On held-out windows of a second and a half and more: equal error rate, and cosine to the teacher."""
    student.eval()
    embeddings, kept = [], []
    for window in range(len(held_out.starts)):
        pcm = held_out.window(window)
        if len(pcm) >= 1.5 * SAMPLE_RATE:
            embeddings.append(F.normalize(student(features.of(pcm)))[0])
            kept.append(window)
    embeddings = torch.stack(embeddings)
    targets = F.normalize(torch.from_numpy(held_out.embeddings[kept]) @ basis)
    speakers = held_out.speakers[held_out.utterances[kept]]
    return {
        "held_out_eer": eer(*Turns(embeddings.numpy(), speakers).trials()),
        "held_out_cosine": float((embeddings * targets).sum(dim=1).mean()),
    }
