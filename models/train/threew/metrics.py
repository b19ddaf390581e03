"""Recall@k and all-support EM@k, as `tests/src/metrics/retrieval.rs` defines them."""

from collections import defaultdict

import numpy as np

from .episodes import Pool
from .features import Features

RECALL_AT = (1, 3, 5, 15)
EXACT_AT = (3, 5, 15)
COLUMNS = (*(f"r{k}" for k in RECALL_AT), *(f"em{k}" for k in EXACT_AT))
DEPTH = 15


def top(scores: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """The best DEPTH records of each row, ties in the order of the records."""
    return np.argsort(np.where(eligible, -scores, np.inf), axis=1, kind="stable")[:, :DEPTH]


def rows(features: Features, scores: np.ndarray) -> np.ndarray:
    """COLUMNS for each question; NaN where it has no evidence."""
    ranked = top(scores, features.eligible)
    hits = np.take_along_axis(features.support, ranked, 1).cumsum(1)
    wanted = features.support.sum(1)
    with np.errstate(invalid="ignore"):
        recall = [hits[:, min(k, hits.shape[1]) - 1] / wanted for k in RECALL_AT]
    exact = [np.where(wanted > 0, recall[RECALL_AT.index(k)] == 1, np.nan) for k in EXACT_AT]
    return np.stack([*recall, *exact], 1)


class Table:
    """Means of COLUMNS over questions, in all and by group."""

    def __init__(self):
        self._groups: dict[str, list[np.ndarray]] = defaultdict(list)

    def add(self, pool: Pool, values: np.ndarray) -> None:
        """Adds the rows of a pool's questions; those without evidence are left out."""
        for question, row in zip(pool.questions, values, strict=True):
            if question.support:
                for group in filter(None, ("overall", question.task, question.speaker_query)):
                    self._groups[group].append(row)

    def means(self) -> dict[str, dict[str, float]]:
        """For each group n and the means."""
        mean = lambda values: dict(zip(COLUMNS, np.mean(values, 0).round(4).tolist(), strict=True))
        return {group: {"n": len(values), **mean(values)} for group, values in self._groups.items()}
