"""`python -m train.threew train|measure`, run in the folder `models` (see README.md)."""

import argparse
import json
from pathlib import Path

import numpy as np

from . import episodes, head, pack, plot, report
from . import train as training
from .embedding import Embedder
from .features import Features, features

#: Records of a pool: measured with as many as PERSIST has, trained with fewer, which costs less.
MEASURED_POOL, TRAINED_POOL = 4331, 2000


def main() -> None:
    options = _options()
    options.run(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="train.threew", description="Trains and measures the 3W head.")
    parser.add_argument("--work", type=Path, required=True, help="keeps downloads and embeddings")
    commands = parser.add_subparsers(required=True)
    learn = commands.add_parser("train", help="trains a head and writes its pack")
    learn.add_argument("--episodes", type=Path, required=True, help="what `spokentrace --out` wrote")
    learn.add_argument("--limit", type=int, default=1500, help="episodes to learn from")
    learn.add_argument("--seed", type=int, default=0)
    learn.add_argument("--out", type=Path, required=True, help="folder of the pack")
    learn.set_defaults(run=_train)
    measure = commands.add_parser("measure", help="measures a head on a folder of episodes")
    measure.add_argument("--episodes", type=Path, required=True)
    measure.add_argument("--limit", type=int, help="only so many episodes")
    measure.add_argument("--pool", type=_pool, default=MEASURED_POOL, help="records of a pool, or `episode`")
    measure.add_argument("--head", type=Path, required=True, help="head.safetensors of the pack")
    measure.add_argument("--json", type=Path, help="also writes the results here")
    measure.set_defaults(run=_measure)
    return parser.parse_args()


def _pool(text: str) -> int | None:
    return None if text == "episode" else int(text)


def _train(options: argparse.Namespace) -> None:
    embed = _embedder(options.work, options.episodes / "train")
    _, learned = _features(options.episodes / "train", options.limit, TRAINED_POOL, embed, options.seed)
    embed = _embedder(options.work, options.episodes / "validation")
    _, validation = _features(options.episodes / "validation", 100, MEASURED_POOL, embed, options.seed + 1)
    params, history = training.train(learned, validation, options.seed, options.work / "checkpoints")
    pack.write(params, embed, options.out)
    (options.work / "loss.svg").write_text(plot.plot(history))


def _measure(options: argparse.Namespace) -> None:
    embed = _embedder(options.work, options.episodes)
    pools, computed = _features(options.episodes, options.limit, options.pool, embed, 0)
    results = report.measure(head.load(options.head), pools, computed)
    print(report.table(results))
    print(results["counterfactual"])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def _embedder(work: Path, folder: Path) -> Embedder:
    return Embedder(work / "downloads", work / "embeddings" / f"{folder.name}.npz")


def _features(
    folder: Path, limit: int | None, pool: int | None, embed: Embedder, seed: int
) -> tuple[list[episodes.Pool], list[Features]]:
    pools = episodes.pools(episodes.load(folder)[:limit], pool)
    rng = np.random.default_rng(seed)
    return pools, [features(each, embed, rng) for each in pools]


if __name__ == "__main__":
    main()
