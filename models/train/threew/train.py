"""Two-stage contrastive training of the 3W head (in the spirit of PERSIST, appendix D.3).

Stage 1 contrasts each question with all memories of its own and the batch's other
episodes. Stage 2 contrasts it with its own episode and the hardest memories of
the whole pool, mined again in each epoch with the head as it is by then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from . import head, metrics
from .features import Features
from .head import Asked, Memory, Params

BATCH = 64
TEMPERATURE = 0.05
HARDEST = 128
"""Memories mined for a question in stage 2."""
DECAY = 1e-3
FASTER = 30.0
"""How much faster gates and time are learned than the projections, which begin where they should stay."""
STRAY = 12.0
"""How dearly it is paid for to move an embedding: keeps the head near the plain embedder."""
TIMELINE = 40
"""Sessions of the longest timeline that episodes are moved on to."""


@dataclass(frozen=True)
class Stage:
    """One stage of training."""

    name: str
    epochs: int
    rate: float
    mined: bool
    chosen_by: str


STAGES = (Stage("batch", 8, 2e-3, False, "r3"), Stage("mined", 3, 7e-4, True, "em5"))


def train(training: list[Features], validation: list[Features], seed: int, out: Path) -> tuple[Params, list[dict]]:
    """Trains a head; returns its best weights and the history of losses."""
    rng = np.random.default_rng(seed)
    size = max(len(pool.embedding) for pool in training)
    params, history = head.initial(seed), []
    for stage in STAGES:
        moments, best, kept = _no_moments(params), -1.0, params
        for epoch in range(stage.epochs):
            losses = []
            for step, batch in enumerate(_batches(training, params, stage, size, rng)):
                warm = min(1.0, (step + 1) / 20) if epoch == 0 else 1.0
                rate = stage.rate * warm * (1 - 0.9 * epoch / stage.epochs)
                params, moments, loss = _step(params, moments, rate, *batch)
                losses.append(float(loss))
            measured = evaluate(params, validation)
            entry = {"stage": stage.name, "epoch": epoch, "loss": float(np.mean(losses)), **measured}
            print("  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()), flush=True)
            history.append(entry)
            head.save(params, out / f"{stage.name}-{epoch:02}.safetensors")
            if measured[stage.chosen_by] > best:
                best, kept = measured[stage.chosen_by], params
        params = kept
    return params, history


def evaluate(params: Params, pools: list[Features]) -> dict[str, float]:
    """The overall means over all questions with evidence."""
    values = np.concatenate([metrics.rows(pool, scores(params, pool)) for pool in pools])
    return dict(zip(metrics.COLUMNS, np.nanmean(values, 0).tolist(), strict=True))


def scores(params: Params, pool: Features) -> np.ndarray:
    """The score of each record for each question of a pool, [Q, N]."""
    return np.asarray(head.score(params, memory(pool), asked(pool, slice(None))))


def memory(pool: Features) -> Memory:
    """A pool's records for the head."""
    return Memory(pool.embedding, pool.previous, pool.asks, head.time_features(pool.session, pool.start_s), pool.voice)


def asked(pool: Features, rows: slice | np.ndarray) -> Asked:
    """Some of a pool's questions for the head; they are asked as a session begins."""
    session = pool.asked_session[rows]
    return Asked(
        pool.question[rows],
        pool.cues[rows],
        head.time_features(session, np.zeros_like(session)),
        pool.asker_voice[rows],
        pool.named_voice[rows],
        pool.lexical[rows],
    )


def _batches(training: list[Features], params: Params, stage: Stage, size: int, rng: np.random.Generator) -> Iterator:
    """The batches of an epoch: memory, questions, which records are candidates, which support."""
    order = []
    mined = {}
    for number, pool in enumerate(training):
        rows = rng.permutation(np.flatnonzero(pool.support.any(1)))
        order += [(number, rows[i : i + BATCH]) for i in range(0, len(rows) - BATCH + 1, BATCH)]
        if stage.mined:
            mined[number] = _mine(params, pool)
    for place in rng.permutation(len(order)):
        number, rows = order[place]
        pool = _moved(training[number], rng)
        own = pool.asked_episode[rows][:, None] == pool.episode
        candidates = own | (mined[number][rows] if stage.mined else own.any(0))
        yield _padded(memory(pool), asked(pool, rows), candidates, pool.support[rows], size)


def _mine(params: Params, pool: Features) -> np.ndarray:
    """The hardest memories of the pool for each question, [Q, N]."""
    hardness = np.where(pool.support, -np.inf, scores(params, pool))
    border = np.partition(hardness, -HARDEST, axis=1)[:, -HARDEST]
    return hardness >= border[:, None]


def _moved(pool: Features, rng: np.random.Generator) -> Features:
    """Half the time, the same episodes as parts of longer timelines."""
    if rng.random() < 0.5:
        return pool
    count = pool.episode.max() + 1
    longest = np.exp(rng.uniform(np.log(3), np.log(TIMELINE), count)).astype(int) + 1
    timeline = np.array([np.sort(rng.choice(most, 3, replace=False)) for most in longest], np.float32)
    session = timeline[pool.episode, pool.session.astype(int)]
    asked_session = timeline[pool.asked_episode, pool.asked_session.astype(int)]
    return Features(**{**vars(pool), "session": session, "asked_session": asked_session})


def _padded(records: Memory, questions: Asked, candidates: np.ndarray, support: np.ndarray, size: int) -> tuple:
    """Pads the records with ones that are no candidates, so that all batches have one shape."""
    more = size - candidates.shape[1]
    long = lambda array: np.pad(array, ((0, more), *[(0, 0)] * (array.ndim - 1)))
    wide = lambda array: np.pad(array, ((0, 0), (0, more)))
    questions = questions._replace(lexical=wide(questions.lexical))
    return Memory(*map(long, records)), questions, wide(candidates), wide(support)


def _loss(params: Params, records: Memory, questions: Asked, candidates: jax.Array, support: jax.Array) -> jax.Array:
    """InfoNCE over the candidates; supporting records do not compete with each other."""
    logits = head.score(params, records, questions) / TEMPERATURE
    wrong = jax.nn.logsumexp(logits, axis=1, where=candidates & ~support)
    each = jnp.logaddexp(logits, wrong[:, None]) - logits
    contrast = ((each * support).sum(1) / support.sum(1)).mean()
    plain = head.unit(records.embedding + head.CONTEXT * records.previous)
    moved_key = ((head.semantic_key(params, records.embedding, records.previous, jnp.zeros(len(plain))) - plain) ** 2).sum(1).mean()
    moved_query = ((head.semantic_query(params, questions.embedding) - questions.embedding) ** 2).sum(1).mean()
    return contrast + STRAY * (moved_key + moved_query)


@jax.jit
def _step(params: Params, moments: tuple, rate: float, *batch) -> tuple[Params, tuple, jax.Array]:
    """One step of AdamW."""
    loss, gradient = jax.value_and_grad(_loss)(params, *batch)
    first, second, count = moments
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    rates = {name: rate * (FASTER if name.startswith(("gate", "time", "asking")) else 1) for name in params}
    update = lambda p, r, m, v: p - r * (
        m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8) + DECAY * p
    )
    return jax.tree.map(update, params, rates, first, second), (first, second, count), loss


def _no_moments(params: Params) -> tuple:
    zeros = jax.tree.map(jnp.zeros_like, params)
    return zeros, zeros, jnp.zeros(())
