"""Trains the student: it hears a voice through noise and room, and answers what the teacher said of the clean one.

The loss has three parts: the distance to the teacher's embedding, the distance
between both tables of similarities within a batch, and the angular margin (AAM)
between voices. Step `n` depends on the seed and `n` alone, so a run that was
stopped goes on as if it had not been.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import features
from .augment import augment
from .measure import Turns, eer
from .model import Ecapa
from .prepare import SAMPLE_RATE, Shard

#: Frames in a crop, and in all the crops of a batch.
SHORTEST, LONGEST = 60, 400
BATCH_FRAMES = 16_000
#: How much of a target is the window's own embedding; the rest is the voice's mean.
OWN = 0.5
PEAK_RATE, WEIGHT_DECAY = 1.5e-3, 0.02
#: Steps in which the rate rises, and the share of all in which it falls to nothing.
WARM_UP, FALL = 60, 0.35
RELATION, ANGULAR = 10.0, 0.05
MARGIN, SCALE = 0.2, 30.0
EVERY = 50


class Corpus:
    """Crops to train on. A voice is one speaker at one speed."""

    def __init__(self, shards: list[Shard], basis: Tensor):
        self.utterances, self.windows, self._of_voice = [], [], []
        targets = []
        for shard in shards:
            first = len(self.utterances)
            self.utterances += [shard.utterance(i) for i in range(len(shard.speakers))]
            of_window = shard.speakers[shard.utterances]
            for speaker in dict.fromkeys(shard.speakers):
                members = np.flatnonzero(of_window == speaker)
                self._of_voice.append(range(len(self.windows), len(self.windows) + len(members)))
                self.windows += [(first + int(shard.utterances[m]), int(shard.starts[m])) for m in members]
                own = torch.from_numpy(shard.embeddings[members])
                targets.append(OWN * own + (1 - OWN) * F.normalize(own.mean(dim=0), dim=0))
        self._targets = F.normalize(torch.cat(targets) @ basis)
        self.voices = len(self._of_voice)

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Clean waves [B, N], targets [B, D] and voices [B]; each voice comes twice."""
        integer = lambda end: int(torch.randint(end, (), generator=generator))
        ratio = float(torch.rand((), generator=generator))
        frames = round(SHORTEST * (LONGEST / SHORTEST) ** ratio)
        voices = torch.randperm(self.voices, generator=generator)[: BATCH_FRAMES // frames // 2].repeat(2)
        windows = [self._of_voice[voice][integer(len(self._of_voice[voice]))] for voice in voices]
        length = features.samples(frames)
        waves = [self._crop(*self.windows[window], length, integer) for window in windows]
        return torch.from_numpy(np.stack(waves)).float() / 32768, self._targets[windows], voices

    def _crop(self, utterance: int, start: int, length: int, integer) -> np.ndarray:
        """A crop near a window; the louder of two, and looped where there is too little."""
        pcm = self.utterances[utterance]
        spare = max(0, min(3 * SAMPLE_RATE, len(pcm)) - length)
        crops = []
        for _ in range(2):
            begin = min(start + integer(spare + 1), max(0, len(pcm) - length))
            crops.append(np.resize(pcm[begin : begin + length], length))
        return max(crops, key=lambda crop: np.abs(crop.astype(np.float32)).sum())


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


def losses(embeddings: Tensor, targets: Tensor, voices: Tensor, angular: Angular) -> dict[str, Tensor]:
    """The parts of the loss, weighted."""
    others = ~torch.eye(len(targets), dtype=torch.bool)
    relation = (embeddings @ embeddings.T - targets @ targets.T)[others].square().mean()
    return {
        "distance": (1 - (embeddings * targets).sum(dim=1)).mean(),
        "relation": RELATION * relation,
        "angular": ANGULAR * angular(embeddings, voices),
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
    shards = [Shard.load(path) for path in sorted(work.glob("speed-*.npz"))]
    student = Ecapa()
    basis = projection(np.concatenate([shard.embeddings for shard in shards]), student.shape.embedding)
    corpus = Corpus(shards, basis)
    angular = Angular(student.shape.embedding, corpus.voices)
    optimizer = torch.optim.AdamW([*student.parameters(), *angular.parameters()], weight_decay=WEIGHT_DECAY)
    held_out = Shard.load(work / "held-out.npz")
    path = work / "student.pt"
    step, history = 0, []
    if path.exists():
        saved = torch.load(path)
        student.load_state_dict(saved["student"])
        angular.load_state_dict(saved["angular"])
        optimizer.load_state_dict(saved["optimizer"])
        step, history = saved["step"], saved["history"]
    print(f"{corpus.voices} voices, {len(corpus.windows)} windows, from step {step} to {steps}", flush=True)
    sums: dict[str, float] = {}
    while step < steps:
        optimizer.param_groups[0]["lr"] = rate(step, steps)
        for name, value in train_step(student, angular, optimizer, corpus, seed, step).items():
            sums[name] = sums.get(name, 0.0) + value
        step += 1
        if step % EVERY == 0 or step == steps:
            done = (step - 1) % EVERY + 1
            history.append({"step": step, **{n: s / done for n, s in sums.items()}, **evaluate(student, held_out, basis)})
            sums = {}
            print(" ".join(f"{n} {v:.4g}" for n, v in history[-1].items()), flush=True)
            state = {"student": student, "angular": angular, "optimizer": optimizer}
            saved = {name: part.state_dict() for name, part in state.items()}
            torch.save({**saved, "step": step, "history": history}, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").replace(path)
            (work / "history.json").write_text(json.dumps(history))


def train_step(student: Ecapa, angular: Angular, optimizer, corpus: Corpus, seed: int, step: int) -> dict[str, float]:
    """One step; gives the parts of the loss."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    waves, targets, voices = corpus.batch(generator)
    heard = mask(features.fbank(augment(waves, waves.roll(1, 0), generator)), generator)
    student.train()
    with torch.autocast("cpu", torch.bfloat16):
        embeddings = student(heard)
    parts = losses(F.normalize(embeddings.float()), targets, voices, angular)
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
    for window, (utterance, start) in enumerate(zip(held_out.utterances, held_out.starts)):
        pcm = held_out.utterance(utterance)[start : start + 3 * SAMPLE_RATE]
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
