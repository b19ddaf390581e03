"""The 3W head: how a question weighs who, what, when and words (see README.md for the equations)."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from .cues import CUE_NAMES
from .embedding import WIDTH

RANK = 16
TIME_WIDTH = 16
SESSION_SCALES = (1.0, 8.0, 64.0)
SECOND_SCALES = (60.0, 600.0)
TIME_FEATURES = len(SESSION_SCALES) + len(SECOND_SCALES) + 1
CONTEXT = 0.35
"""Weight of the turn before in a record's semantic block."""
GATES = ("self", "named", "time")
#: What the gates give before anything is learned.
PRIOR = (0.3, 0.15, 0.3)
#: What they give at most: a name is a soft boost and never a filter.
CEILING = (1.0, 0.6, 1.0)
LEXICAL = 0.5
"""Weight of the words. Not learned: questions of one grammar teach to distrust words, and real ones suffer."""
GLANCE = 0.05
"""How much of the sentence embedding the gates and the temporal query see, beside the cues."""

Params = dict[str, jax.Array]


class Memory(NamedTuple):
    """The records as the head sees them."""

    embedding: jax.Array
    previous: jax.Array
    asks: jax.Array
    time: jax.Array
    """[N, TIME_FEATURES]."""
    voice: jax.Array


class Asked(NamedTuple):
    """The questions as the head sees them, and what others have scored for them."""

    embedding: jax.Array
    cues: jax.Array
    time: jax.Array
    asker_voice: jax.Array
    named_voice: jax.Array
    lexical: jax.Array


def initial(seed: int) -> Params:
    """A head that changes nothing about the embedder."""
    rng = np.random.default_rng(seed)
    draw = lambda *shape, scale: jnp.asarray(rng.standard_normal(shape) * scale, jnp.float32)
    state = WIDTH + len(CUE_NAMES)
    return {
        "query_down": draw(RANK, WIDTH, scale=WIDTH**-0.5),
        "query_up": jnp.zeros((WIDTH, RANK)),
        "asking": jnp.array(0.05),
        "key_down": draw(RANK, WIDTH, scale=WIDTH**-0.5),
        "key_up": jnp.zeros((WIDTH, RANK)),
        "time_key": draw(TIME_WIDTH, TIME_FEATURES, scale=0.3),
        "time_query": draw(TIME_WIDTH, state + TIME_FEATURES, scale=0.02),
        "gate": jnp.zeros((len(GATES), state)),
        "gate_bias": jax.scipy.special.logit(jnp.array(PRIOR) / jnp.array(CEILING)),
    }


def time_features(session: np.ndarray, start_s: np.ndarray) -> np.ndarray:
    """The session's number and the time within it on several scales, [..., TIME_FEATURES], from 0 to 1."""
    sessions = [session / (session + scale) for scale in SESSION_SCALES]
    seconds = [start_s / (start_s + scale) for scale in SECOND_SCALES]
    return np.stack([*sessions, *seconds, np.ones_like(session)], -1).astype(np.float32)


def semantic_query(params: Params, embedding: jax.Array) -> jax.Array:
    """[Q, WIDTH] of length 1."""
    return unit(embedding + embedding @ params["query_down"].T @ params["query_up"].T)


def semantic_key(params: Params, embedding: jax.Array, previous: jax.Array, asks: jax.Array) -> jax.Array:
    """[N, WIDTH] of length 1, or shorter for a record that only asks: it is no evidence."""
    mixed = unit(embedding + CONTEXT * previous)
    return unit(mixed + mixed @ params["key_down"].T @ params["key_up"].T) * (1 - params["asking"] * asks[..., None])


def temporal_key(params: Params, time: jax.Array) -> jax.Array:
    """[N, TIME_WIDTH], shorter than 1/2 (PERSIST, equation 2)."""
    return bounded(time @ params["time_key"].T)


def temporal_query(params: Params, state: jax.Array, time: jax.Array) -> jax.Array:
    """[Q, TIME_WIDTH], shorter than 1/2 (PERSIST, equation 2)."""
    return bounded(jnp.concatenate([state, time], -1) @ params["time_query"].T)


def question_state(embedding: jax.Array, cues: jax.Array) -> jax.Array:
    """What gates and the temporal query read, [Q, WIDTH + number of cues]."""
    return jnp.concatenate([GLANCE * embedding, cues], -1)


def gates(params: Params, state: jax.Array) -> jax.Array:
    """How much each block counts for a question, [Q, len(GATES)], from 0 to CEILING."""
    return jnp.array(CEILING) * jax.nn.sigmoid(state @ params["gate"].T + params["gate_bias"])


def voice_query(weight: jax.Array, asked: Asked) -> jax.Array:
    """Whose words are meant: the asker's and the named people's voices by their gates, [Q, 192]."""
    return weight[:, :1] * asked.asker_voice + weight[:, 1:2] * asked.named_voice


def score(params: Params, memory: Memory, asked: Asked) -> jax.Array:
    """The score of each record for each question, [Q, N]."""
    state = question_state(asked.embedding, asked.cues)
    weight = gates(params, state)
    what = semantic_query(params, asked.embedding) @ semantic_key(params, memory.embedding, memory.previous, memory.asks).T
    when = temporal_query(params, state, asked.time) @ temporal_key(params, memory.time).T
    who = voice_query(weight, asked) @ memory.voice.T
    return what + who + weight[:, 2:] * when + LEXICAL * asked.lexical


def unit(rows: jax.Array) -> jax.Array:
    """Rows of length 1."""
    return rows / jnp.sqrt((rows**2).sum(-1, keepdims=True) + 1e-12)


def bounded(rows: jax.Array) -> jax.Array:
    """phi(x) = x / (1 + |x|^2)."""
    return rows / (1 + (rows**2).sum(-1, keepdims=True))


def save(params: Params, path: Path) -> None:
    """Writes the weights as safetensors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors.numpy.save({name: np.asarray(value) for name, value in params.items()}))


def load(path: Path) -> Params:
    """Reads the weights that `save` wrote."""
    return {name: jnp.asarray(value) for name, value in safetensors.numpy.load(path.read_bytes()).items()}
