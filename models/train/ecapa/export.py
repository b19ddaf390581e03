"""Chooses the 8-bit ranges on real speech and writes `model_f32.onnx` and `model.onnx`."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from . import features
from .graph import Range, write
from .measure import Model
from .model import Ecapa
from .prepare import Shard

#: Shares of the windows whose every value a range holds; the one with the best cosine is taken.
COVERAGES = (1.0, 0.97, 0.9)
#: Windows, of which every second serves to find ranges and the others to choose the coverage.
CALIBRATION = 192


def export(work: Path) -> None:
    """Writes both models of `final.pt` beside it."""
    student = Ecapa()
    student.load_state_dict(torch.load(work / "final.pt"))
    student.eval()
    shard = Shard.load(work / "speed-1.00.npz")
    inputs = speech(shard, CALIBRATION)
    watched = write(student, work / "model_f32.onnx")
    plain = Model(work / "model_f32.onnx")
    check(student, plain, inputs[:8])
    spread = observe(work / "model_f32.onnx", watched, inputs[::2])
    wanted = np.stack([plain(x) for x in inputs[1::2]])
    best = 0.0
    for coverage, ranges in spread.items():
        path = work / f"trial-{coverage}.onnx"
        write(student, path, ranges)
        model = Model(path)
        cosine = float(np.mean([np.dot(model(x), y) for x, y in zip(inputs[1::2], wanted)]))
        print(f"ranges that hold {coverage:.0%} of the windows: cosine {cosine:.4f} to float, {path.stat().st_size} bytes")
        if cosine > best:
            best = cosine
            path.replace(work / "model.onnx")
        else:
            path.unlink()


def speech(shard: Shard, count: int) -> list[np.ndarray]:
    """Features [1, T, 80] of windows spread over all utterances."""
    windows = [pcm for _, pcm in shard.windows()]
    chosen = np.linspace(0, len(windows) - 1, min(count, len(windows))).astype(int)
    return [features.of(windows[w]).numpy() for w in chosen]


def check(student: Ecapa, model: Model, inputs: list[np.ndarray]) -> None:
    """Refuses a float graph that does not do what the student does."""
    for x in inputs:
        with torch.no_grad():
            wanted = student(torch.from_numpy(x))[0].numpy()
        if (cosine := np.dot(model(x), wanted / np.linalg.norm(wanted))) < 0.99999:
            raise AssertionError(f"the exported graph strays from the student: cosine {cosine}")


def observe(path: Path, watched: list[tuple[str, str]], inputs: list[np.ndarray]) -> dict[float, dict[str, Range]]:
    """Runs the float graph and finds the range of each point for each coverage."""
    model = onnx.load(path)
    names = list(dict.fromkeys(tensor for _, tensor in watched))
    known = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    extremes = np.array([[(v.min(), v.max()) for v in session.run(names, {"fbank": x})] for x in inputs])
    spread = {
        name: [(np.quantile(low, 1 - coverage), np.quantile(high, coverage)) for coverage in COVERAGES]
        for name, (low, high) in zip(names, extremes.transpose(1, 2, 0))
    }
    points = {point: [tensor for p, tensor in watched if p == point] for point, _ in watched}
    return {
        coverage: {
            point: Range.of(min(spread[t][i][0] for t in tensors), max(spread[t][i][1] for t in tensors))
            for point, tensors in points.items()
        }
        for i, coverage in enumerate(COVERAGES)
    }
