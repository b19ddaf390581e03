"""Makes a pack out of a streaming transducer or CTC model in the layout of sherpa-onnx.

    python -m recipes.sherpa MODEL --speech FILE.wav --license SPDX --attribution TEXT --out DIR
    earwitness-pack seal DIR

MODEL is a folder with `tokens.txt` and either `encoder*.onnx`, `decoder*.onnx` and
`joiner*.onnx` or, for CTC, `model*.onnx` or `ctc*.onnx`. The graphs stay as they are but for the
number of streams, which becomes 1. What they give for the speech in onnxruntime goes into the
pack, and sealing it shows whether the runtime computes the same; a graph with operators that the
runtime does not have is refused there, by their names.
"""

import argparse
import sys
import wave
from pathlib import Path

import numpy as np
import onnx

from ..common import SAMPLE_RATE, RecipeError, write_pack, write_parity
from .reference import Reference

#: The front end of icefall's recipes, but for the number of bands.
FBANK = {
    "sample_rate_hz": SAMPLE_RATE,
    "frame_length_ms": 25.0,
    "frame_shift_ms": 10.0,
    "low_hz": 20.0,
    "high_hz": -400.0,
    "window": "povey",
    "preemphasis": 0.97,
    "remove_dc_offset": True,
    "scale": 1.0,
    "normalization": "none",
}
#: What the graphs are called in a pack, and in the layout.
TRANSDUCER = {"encoder": ["encoder*.onnx"], "decoder": ["decoder*.onnx"], "joiner": ["joiner*.onnx"]}
CTC = {"encoder": ["model*.onnx", "ctc*.onnx"]}
#: Silence after an utterance in sherpa-onnx's own examples.
TAIL_SECONDS = 0.66
MAX_SECONDS = 32


def main() -> int:
    parser = argparse.ArgumentParser(prog="recipes.sherpa", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path, help="the folder with the graphs and tokens.txt")
    parser.add_argument("--speech", type=Path, nargs="+", required=True, help="WAV files, 16 kHz, mono, 16 bits, to compare on")
    parser.add_argument("--license", required=True, help="SPDX expression of the model's license")
    parser.add_argument("--attribution", required=True, help="whom the license asks to name")
    parser.add_argument("--beam", type=int, default=4, help="hypotheses that are followed; 1 is greedy decoding")
    parser.add_argument("--tail", type=float, default=TAIL_SECONDS, help="seconds of silence after an utterance")
    parser.add_argument("--out", type=Path, required=True, help="a new or empty folder for the pack")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if any(options.out.iterdir()):
        parser.error(f"{options.out} is not empty")
    try:
        build(options)
    except RecipeError as error:
        print(f"{options.model}: {error}", file=sys.stderr)
        return 1
    return 0


def build(options: argparse.Namespace) -> None:
    """Builds the pack."""
    is_transducer = any(options.model.glob("joiner*.onnx"))
    graphs = {name: one_stream(find(options.model, patterns)) for name, patterns in (TRANSDUCER if is_transducer else CTC).items()}
    bands, shift = shape_of(graphs["encoder"])
    for name, graph in graphs.items():
        onnx.save(graph, options.out / f"{name}.onnx")
    (options.out / "tokens.txt").write_bytes(find(options.model, ["tokens.txt"]).read_bytes())
    settings = {
        "architecture": "transducer" if is_transducer else "ctc",
        "blank": 0,
        "beam": options.beam,
        "chunk_shift": shift,
        "tail_seconds": options.tail,
        "max_seconds": MAX_SECONDS,
    }
    front_end = {**FBANK, "mel_bins": bands}
    reference = Reference(options.out, front_end, settings)
    write_parity(options.out, [{"audio": pcm, "tokens": reference.tokens(pcm)} for pcm in map(read, options.speech)])
    manifest = {
        "kind": "asr",
        "name": options.model.resolve().name,
        "version": "1",
        "license": options.license,
        "attribution": options.attribution,
        "precision": "as published",
        "front_end": {"fbank": front_end},
        "output": {"shape": [0], "meaning": "token ids, from `tokens.txt`"},
        "parity": {"metric": "min_token_agreement", "bound": 0.97},
        "settings": settings,
    }
    write_pack(options.out, manifest, [])


def find(folder: Path, patterns: list[str]) -> Path:
    """The one file of that name; weights in 8 bits only where there are no others."""
    found = sorted((path for pattern in patterns for path in folder.glob(pattern)), key=lambda path: (".int8." in path.name, path.name))
    if not found:
        raise RecipeError(f"there is no {' or '.join(patterns)}")
    return found[0]


def one_stream(path: Path) -> onnx.ModelProto:
    """The graph for one stream at a time: every length that is left open is the number of streams."""
    model = onnx.load(path)
    for value in model.graph.input:
        for length in value.type.tensor_type.shape.dim:
            if length.WhichOneof("value") != "dim_value":
                length.dim_value = 1
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return model


def shape_of(encoder: onnx.ModelProto) -> tuple[int, int]:
    """Bands of a chunk, and frames from one chunk to the next."""
    metadata = {entry.key: entry.value for entry in encoder.metadata_props}
    if "decode_chunk_len" not in metadata:
        raise RecipeError("its encoder does not say `decode_chunk_len`: it is no streaming model of icefall")
    _, _, bands = (length.dim_value for length in encoder.graph.input[0].type.tensor_type.shape.dim)
    return bands, int(metadata["decode_chunk_len"])


def read(path: Path) -> np.ndarray:
    """A recording in int16."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (SAMPLE_RATE, 1, 2):
            raise RecipeError(f"{path} is not 16 kHz, mono, 16 bits")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


if __name__ == "__main__":
    sys.exit(main())
