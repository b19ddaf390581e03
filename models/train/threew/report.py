"""Measures a head beside what it has to beat, by task and by speaker query."""

import numpy as np

from . import head, metrics, train
from .episodes import Pool
from .features import Features
from .head import Params


def retrievers(params: Params) -> dict:
    """Name to a function from a pool's features to scores, [Q, N]."""
    return {
        "bm25": lambda pool: pool.bm25,
        "dense": _dense,
        "rrf": lambda pool: _reciprocal(pool.bm25) * (pool.bm25 > 0) + _reciprocal(_dense(pool)),
        "fusion": lambda pool: _scaled(pool.bm25) + _scaled(_dense(pool)),
        "threew": lambda pool: train.scores(params, pool),
        "threew-no-time": lambda pool: train.scores(_without(params, "time_query"), pool),
        "threew-no-speaker": lambda pool: train.scores(params, _silent(pool)),
        "threew-untrained": lambda pool: train.scores(head.initial(0), pool),
    }


def measure(params: Params, pools: list[Pool], features: list[Features]) -> dict:
    """The means of each retriever, and the counterfactual test (PERSIST, section 4.3)."""
    results = {}
    for name, scored in retrievers(params).items():
        table = metrics.Table()
        for pool, each in zip(pools, features, strict=True):
            table.add(pool, metrics.rows(each, scored(each)))
        results[name] = table.means()
    pairs = [counterfactual(params, pool, each) for pool, each in zip(pools, features, strict=True)]
    preferred = np.concatenate(pairs)
    share = float(preferred.mean()) if len(preferred) else None
    return {**results, "counterfactual": {"pairs": len(preferred), "gold_preferred": share}}


def counterfactual(params: Params, pool: Pool, features: Features) -> np.ndarray:
    """For questions in the first person, whether the gold record is above the same record in another voice.

    One pair for each gold record and each other speaker of its episode.
    """
    asked = train.asked(features, slice(None))
    weight = head.gates(params, head.question_state(asked.embedding, asked.cues))
    wanted = np.asarray(head.voice_query(weight, asked))
    first_of = {speaker: place for place, speaker in reversed(list(enumerate(features.speaker)))}
    preferred = []
    for number, question in enumerate(pool.questions):
        if question.speaker_query != "self_to_fact":
            continue
        for gold in question.support:
            others = set(features.speaker[features.episode == features.episode[gold]]) - {features.speaker[gold]}
            other_voices = features.voice[[first_of[speaker] for speaker in sorted(others)]]
            preferred += list(wanted[number] @ features.voice[gold] > other_voices @ wanted[number])
    return np.array(preferred, bool)


def table(results: dict, groups: list[str] | None = None) -> str:
    """The results as a Markdown table."""
    lines = [f"| retriever | group | n | {' | '.join(metrics.COLUMNS)} |", "|---" * (3 + len(metrics.COLUMNS)) + "|"]
    for name, means in results.items():
        for group, row in means.items() if name != "counterfactual" else ():
            if groups is None or group in groups:
                numbers = " | ".join(f"{row[column]:.3f}" for column in metrics.COLUMNS)
                lines.append(f"| `{name}` | {group} | {row['n']} | {numbers} |")
    return "\n".join(lines)


def _dense(pool: Features) -> np.ndarray:
    return pool.question @ pool.embedding.T


def _reciprocal(scores: np.ndarray) -> np.ndarray:
    ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    return 1 / (61 + ranks)


def _scaled(scores: np.ndarray) -> np.ndarray:
    low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
    return (scores - low) / np.maximum(high - low, 1e-9)


def _without(params: Params, name: str) -> Params:
    return {**params, name: params[name] * 0}


def _silent(pool: Features) -> Features:
    return Features(**{**vars(pool), "voice": pool.voice * 0})
