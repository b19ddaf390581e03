"""Voiceprints as they would come from the `voiceprint` pack, drawn at random.

Cosines are those of real voiceprints: about 0.1 between speakers (they share a
mean), 0.6 to 0.8 between two turns of one speaker.
"""

import numpy as np

WIDTH = 192
SHARED = 0.33
"""Weight of what all voices have in common: its square is the cosine between speakers."""
NOISE = (0.5, 0.8)
"""Length of what differs from turn to turn, against a voice of length 1."""


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def speakers(count: int, rng: np.random.Generator) -> np.ndarray:
    """True voices, [count, WIDTH]."""
    shared = unit(rng.standard_normal(WIDTH))
    own = unit(rng.standard_normal((count, WIDTH)))
    return unit(SHARED * shared + np.sqrt(1 - SHARED**2) * own).astype(np.float32)


def turns(voices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The voiceprint of one turn for each row of voices."""
    noise = unit(rng.standard_normal(voices.shape)) * rng.uniform(*NOISE, (len(voices), 1))
    return unit(voices + noise).astype(np.float32)
