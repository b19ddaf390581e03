"""How well embeddings tell voices apart: equal error rate and minimum detection cost."""

import numpy as np


def trials(embeddings: np.ndarray, speakers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cosine of every pair of embeddings [N, D] of length 1, and whether one person spoke both."""
    first, second = np.triu_indices(len(embeddings), k=1)
    return (embeddings @ embeddings.T)[first, second], speakers[first] == speakers[second]


def error_rates(scores: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False rejects and false accepts at every threshold, from the lowest score to above the highest."""
    same = same[np.argsort(scores)]
    rejects = np.concatenate([[0], np.cumsum(same)]) / same.sum()
    accepts = 1 - np.concatenate([[0], np.cumsum(~same)]) / (~same).sum()
    return rejects, accepts


def eer(scores: np.ndarray, same: np.ndarray) -> float:
    """The rate at which false rejects and false accepts are alike."""
    rejects, accepts = error_rates(scores, same)
    nearest = np.argmin(np.abs(rejects - accepts))
    return float(rejects[nearest] + accepts[nearest]) / 2


def min_dcf(scores: np.ndarray, same: np.ndarray, prior: float = 0.01) -> float:
    """Minimum detection cost of NIST, both errors of cost 1, relative to answering always the same."""
    rejects, accepts = error_rates(scores, same)
    return float((prior * rejects + (1 - prior) * accepts).min() / min(prior, 1 - prior))
