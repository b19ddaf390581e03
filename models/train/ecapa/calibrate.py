"""Finds a voiceprint's thresholds, and the probability behind a cosine, on voices that it was not trained on.

- `calibration` is Platt's: a logistic regression of whether one person spoke two
  turns, both answers equally likely beforehand.
- `match` is where a tracker attributes most turns rightly over random casts: best
  cosine over centroids that are moving averages.
- `merge`, a median over pairs of turns, is where the calibration is undecided.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import expit

from .measure import Turns

CASTS, CAST, TURNS_EACH = 150, 6, 12
#: The moving average weighs a new turn at least so much.
WEIGHT = 0.05
#: A turn moves a centroid only when it is so much above a match.
CONFIDENCE = 0.06
MATCHES = np.round(np.arange(0.2, 0.65, 0.01), 2)
#: A speaker of fewer turns is no test of a tracker.
FEWEST = 4


def calibrate(turns: Turns, seed: int) -> str:
    """The manifest's `thresholds` and `calibration` in TOML, and what they rest on as comments."""
    of = [turns.embeddings[turns.speakers == speaker] for speaker in dict.fromkeys(turns.speakers)]
    speakers = [own for own in of if len(own) >= FEWEST]
    accuracies = match_accuracies(speakers, np.random.default_rng(seed))
    match = best_match(accuracies)
    slope, offset = platt(*turns.trials())
    near = ", ".join(f"{m:.2f}: {a:.1%}" for m, a in zip(MATCHES, accuracies) if abs(m - match) < 0.045)
    return "\n".join([
        f"# {len(turns.speakers)} turns of {len(of)} speakers; rightly attributed at a match of {near}",
        f"thresholds = {{ match = {match:.2f}, update = {match + CONFIDENCE:.2f}, merge = {-offset / slope:.2f} }}",
        f"calibration = {{ slope = {slope:.1f}, offset = {offset:.1f} }}",
    ])


def match_accuracies(speakers: list[np.ndarray], generator: np.random.Generator) -> np.ndarray:
    """The mean attribution accuracy of the casts for each of `MATCHES`."""
    results = np.zeros((CASTS, len(MATCHES)))
    for row in results:
        cast = [speakers[i] for i in generator.choice(len(speakers), CAST, replace=False)]
        spoken = [(who, turn) for who, own in enumerate(cast) for turn in generator.permutation(own)[:TURNS_EACH]]
        spoken = [spoken[i] for i in generator.permutation(len(spoken))]
        truth, stream = np.array([who for who, _ in spoken]), [turn for _, turn in spoken]
        row[:] = [accuracy(truth, track(stream, match)) for match in MATCHES]
    return results.mean(axis=0)


def best_match(accuracies: np.ndarray) -> float:
    """The middle of the thresholds that are within a thousandth of the best."""
    return float(np.median(MATCHES[accuracies >= accuracies.max() - 0.001]))


def track(turns: list[np.ndarray], match: float) -> np.ndarray:
    """The identity that each turn is given (VoxPolyMem, equations 1 and 2)."""
    centroids, counts, given = [], [], []
    for turn in turns:
        cosines = np.stack(centroids) @ turn if centroids else np.array([-1.0])
        best = int(np.argmax(cosines))
        if cosines[best] < match:
            best = len(centroids)
            centroids.append(turn)
            counts.append(1)
        elif cosines[best] >= match + CONFIDENCE:
            weight = max(WEIGHT, 1 / (counts[best] + 1))
            centroids[best] = unit((1 - weight) * centroids[best] + weight * turn)
            counts[best] += 1
        given.append(best)
    return np.array(given)


def accuracy(truth: np.ndarray, given: np.ndarray) -> float:
    """The share that is right after the best pairing of people and identities."""
    table = np.zeros((truth.max() + 1, given.max() + 1))
    np.add.at(table, (truth, given), 1)
    return table[linear_sum_assignment(-table)].sum() / len(truth)


def platt(scores: np.ndarray, same: np.ndarray) -> tuple[float, float]:
    """Slope and offset of the log odds that one person is behind both."""
    weights = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())
    signs = np.where(same, 1.0, -1.0)
    loss = lambda p: -(weights * np.log(expit(signs * (p[0] * scores + p[1])) + 1e-12)).sum()
    return tuple(minimize(loss, (10.0, -4.0), method="Nelder-Mead").x)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
