"""Makes the models of this folder: `PYTHONPATH=models python models/tests/tones/make.py`.

They hear a language of five tones. The weights follow from what they are to say, so nobody has
to train them. A tone is heard where its band of the filter bank is loud in most of 80 ms; the
transducer says a token where a tone begins, which it can only tell from its state where a chunk
begins; the CTC model says it for as long as the tone lasts.

To the transducer `sea` and `see` sound alike. `see` is a little likelier by itself, but does not
go with `shell`: what was said is only clear afterwards, and only to a beam. Scores of CTC do not
depend on other tokens; it has not heard of `see`.
"""

import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

HERE = Path(__file__).parent
TOKENS = ["<blk>", "<unk>", "▁she", "▁sell", "s", "▁see", "▁sea", "▁shell"]
#: Band of the filter bank, and what its tone makes likely.
TONES = [(12, {"▁she": 10}), (24, {"▁sell": 10}), (36, {"s": 10}), (48, {"▁see": 10.2, "▁sea": 10}), (60, {"▁shell": 10})]
#: Likelier, or less so, after a token.
AFTER = {("<blk>", "s"): -20, ("s", "s"): -20, ("▁see", "▁shell"): -3.5}
BLANK = 6
PHRASE = [0, 1, 2, 3, 4, 2]
SAMPLE_RATE, BANDS, CHUNK, SHIFT = 16_000, 80, 12, 8
#: Log energy above which a band is loud.
LOUD = -2.0

ENCODER = """
<ir_version: 9, opset_import: ["" : 17]>
encoder (float[N,{chunk},{bands}] x, float[N,{tones},1] cached_on, int64[N] processed_lens)
    => (float[N,2,{tokens}] encoder_out, float[N,{tones},1] new_cached_on, int64[N] new_processed_lens) {{
  by_band = Transpose<perm = [0, 2, 1]>(x)
  energy = Conv<strides = [4], kernel_shape = [8]>(by_band, filters)
  loud = Greater(energy, threshold)
  on = Cast<to = 1>(loud)
  before_and_on = Concat<axis = 2>(cached_on, on)
  before = Slice(before_and_on, zero, two, axis)
  change = Sub(on, before)
  begun = Relu(change)
  frames = Transpose<perm = [0, 2, 1]>({heard})
  scores = MatMul(frames, likely)
  {last}
  new_cached_on = Slice(on, one, two, axis)
  new_processed_lens = Add(processed_lens, two)
}}
"""
DECODER = """
<ir_version: 9, opset_import: ["" : 17]>
decoder (int64[N,2] y) => (float[N,{tokens}] decoder_out) {{
  last = Slice(y, one, two, one)
  known = Max(last, zero)
  flat = Squeeze(known, one)
  decoder_out = Gather(after, flat)
}}
"""
JOINER = """
<ir_version: 9, opset_import: ["" : 17]>
joiner (float[N,{tokens}] encoder_out, float[N,{tokens}] decoder_out) => (float[N,{tokens}] logit) {{
  logit = Add(encoder_out, decoder_out)
}}
"""


def hertz(band: int) -> float:
    """The middle of a band of the filter bank."""
    low, high = (1127 * np.log1p(f / 700) for f in (20, SAMPLE_RATE / 2 - 400))
    return 700 * np.expm1((low + (band + 1) * (high - low) / (BANDS + 1)) / 1127)


def write(path: Path, text: str, constants: dict, metadata: dict | None = None) -> None:
    """Writes a graph with its constants."""
    model = parser.parse_model(text.format(chunk=CHUNK, bands=BANDS, tones=len(TONES), tokens=len(TOKENS)))
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    onnx.helper.set_model_props(model, metadata or {})
    onnx.checker.check_model(model)
    onnx.save(model, path)


def encoder(path: Path, heard: str, last: str, unknown: str = "") -> None:
    """`heard` is what the scores follow from, `last` what becomes of them, `unknown` a token that is never said."""
    filters = np.zeros((len(TONES), BANDS, 8), np.float32)
    likely = np.zeros((len(TONES), len(TOKENS)), np.float32)
    for tone, (band, tokens) in enumerate(TONES):
        filters[tone, band] = 1 / 8
        for token in tokens.keys() - {unknown}:
            likely[tone, TOKENS.index(token)] = tokens[token]
    quiet = np.zeros(len(TOKENS), np.float32)
    quiet[0] = BLANK
    integers = {name: np.array([value], np.int64) for name, value in {"zero": 0, "one": 1, "two": 2, "axis": 2}.items()}
    constants = {"filters": filters, "threshold": np.float32(LOUD), "likely": likely, "quiet": quiet, **integers}
    text = ENCODER.replace("{heard}", heard).replace("{last}", last)
    write(path, text, constants, {"model_type": "tones", "T": str(CHUNK), "decode_chunk_len": str(SHIFT)})


def models(folder: Path) -> None:
    """Both models in the layout of sherpa-onnx."""
    for name in ("transducer", "ctc"):
        (folder / name).mkdir()
        (folder / name / "tokens.txt").write_text("".join(f"{token} {id}\n" for id, token in enumerate(TOKENS)))
    encoder(folder / "ctc/model.onnx", "on", "with_blank = Add(scores, quiet) encoder_out = LogSoftmax<axis = 2>(with_blank)", "▁see")
    encoder(folder / "transducer/encoder.onnx", "begun", "encoder_out = Add(scores, quiet)")
    after = np.zeros((len(TOKENS), len(TOKENS)), np.float32)
    for (last, token), logit in AFTER.items():
        after[TOKENS.index(last), TOKENS.index(token)] = logit
    integers = {name: np.array([value], np.int64) for name, value in {"zero": 0, "one": 1, "two": 2}.items()}
    write(folder / "transducer/decoder.onnx", DECODER, {"after": after, **integers}, {"context_size": "2"})
    write(folder / "transducer/joiner.onnx", JOINER, {}, {"joiner_dim": str(len(TOKENS))})


def phrase(path: Path) -> None:
    """200 ms of each tone, with pauses of 100 ms."""
    pause = np.zeros(SAMPLE_RATE // 10)
    time = np.arange(SAMPLE_RATE // 5) / SAMPLE_RATE
    tone = lambda at: 0.3 * np.sin(2 * np.pi * hertz(TONES[at][0]) * time)
    sound = np.concatenate([part for at in PHRASE for part in (pause, tone(at))] + [pause])
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(np.rint(sound * 32767).astype("<i2").tobytes())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        models(folder)
        phrase(folder / "phrase.wav")
        for name in ("transducer", "ctc"):
            recipe = [sys.executable, "-m", "recipes.sherpa", str(folder / name), "--out", str(HERE / name)]
            about = ["--speech", str(folder / "phrase.wav"), "--license", "MIT OR Apache-2.0", "--attribution", "made for a test"]
            subprocess.run([*recipe, *about, "--tail", "0.1"], check=True)
    print("tones in Hz:", *(f"{hertz(band):.0f}" for band, _ in TONES))


if __name__ == "__main__":
    main()
