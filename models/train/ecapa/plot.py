"""Draws how the training went."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot


def plot(work: Path) -> None:
    """Writes `loss.svg` from `history.json`."""
    history = json.loads((work / "history.json").read_text())
    steps = [entry["step"] for entry in history]
    # Without a date and with a fixed salt the file depends on the figures alone.
    pyplot.rcParams.update({"svg.hashsalt": "earwitness", "svg.fonttype": "none"})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for name in ("distance", "relation", "hints"):
        left.plot(steps, [entry[name] for entry in history], label=name)
    left.set(xlabel="step", title="loss on augmented crops")
    left.legend()
    right.plot(steps, [100 * entry["held_out_eer"] for entry in history], label="equal error rate, %")
    right.plot(steps, [100 * entry["held_out_cosine"] for entry in history], label="cosine to the teacher, %")
    right.set(xlabel="step", yscale="log", title="held-out speakers")
    right.legend()
    figure.tight_layout()
    figure.savefig(work / "loss.svg", metadata={"Date": None})
