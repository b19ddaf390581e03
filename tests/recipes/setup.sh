#!/bin/sh
# Everything the recipes need, into `.work` beside this file: a virtual
# environment with hash-checked packages, and the voices' style vectors.
# Needs Python 3.11 or later and npm. A second run does nothing new.
set -eu
cd "$(dirname "$0")"

python3 -m venv .work/venv
.work/venv/bin/pip install --quiet --require-hashes --only-binary :all: -r requirements.txt
# voices.py checks the archive's SHA-256 before it reads from it.
[ -e .work/kokoro-js-1.2.1.tgz ] || npm pack --silent kokoro-js@1.2.1 --pack-destination .work >/dev/null
