"""Retrieval: the project's own 3W head.

The weights lie in the repository (`models/weights/threew`, made by
`models/train/threew`), so that nobody has to train and nothing is downloaded.
"""

import shutil
from pathlib import Path

from .common import Fetcher

WEIGHTS = Path(__file__).parents[1] / "weights" / "threew"


def build(_: Fetcher, out: Path) -> None:
    shutil.copytree(WEIGHTS, out, dirs_exist_ok=True)
