"""Speech recognition: Moonshine tiny-en as two plain graphs and a vocabulary.

- `encoder.onnx`: samples -> keys and values of every cross-attention, once an utterance.
- `decoder.onnx`: one token and the caller's cache -> logits and the token's own keys and values.
- `vocabulary.txt`: what each token adds to the text, one line a token.

The weights stay the 8-bit ones that were published; only the activations are
no longer quantized.
"""

from pathlib import Path

import numpy as np

from . import moonshine
from .common import MOONSHINE_VOICE, SAMPLE_RATE, Fetcher, RecipeError, speech, to_float, write_pack, write_parity
from .moonshine import HEAD_WIDTH, HEADS, LAYERS, WIDTH, Weights
from .onnx_graph import DOMAIN, Graph, Weight

SOURCES = [MOONSHINE_VOICE]
#: Dimensions of a head that carry the rotary position embedding.
ROTARY_WIDTH = 32
#: Longest transcript in tokens, and with it the length of the decoder's cache.
MAX_TOKENS = 256
#: Longest audio. Attention in the encoder takes memory with its square.
MAX_SECONDS = 32
#: Frames of the encoder in MAX_SECONDS, and a little more.
MAX_FRAMES = 1400
#: Under a second the model was hardly trained; such audio is padded with silence.
MIN_SECONDS = 1
LONGEST_REFERENCE_S = 12
#: Heads of the decoder's cross-attention that follow the speech, by layer: of all 48, the
#: four whose attention falls most on one stretch of frames a token, in order.
ALIGNMENT_HEADS = {3: [0, 2], 4: [3, 6]}


def build(fetch: Fetcher, out: Path) -> None:
    """Builds the pack in the empty folder `out`."""
    wheel = fetch(MOONSHINE_VOICE)
    original = moonshine.Original(wheel)
    encoder, decoder = original.weights()
    write_encoder(out / "encoder.onnx", encoder, decoder)
    write_decoder(out / "decoder.onnx", encoder.inverse_frequencies, decoder)
    (out / "vocabulary.txt").write_text("".join(f"{escape(t)}\n" for t in moonshine.vocabulary(wheel)), newline="\n")
    write_parity(out, references(original, speech(fetch)))
    write_pack(out, MANIFEST, SOURCES)


def escape(text: bytes) -> str:
    r"""A token's bytes on one line: `\xNN` for what is not printable UTF-8, `\\` for a backslash."""
    try:
        printable = text.decode().isprintable() and b"\\" not in text
    except UnicodeDecodeError:
        printable = False
    if printable:
        return text.decode()
    plain = lambda byte: chr(byte) if 32 <= byte < 127 and byte != ord("\\") else f"\\x{byte:02x}"
    return "".join("\\\\" if byte == ord("\\") else plain(byte) for byte in text)


def references(original: moonshine.Original, recordings: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Pieces of real speech, each with the tokens that the original graphs give for it."""
    longest = LONGEST_REFERENCE_S * SAMPLE_RATE
    cases = []
    for pcm in recordings.values():
        pieces = -(-len(pcm) // longest)
        for piece in np.array_split(pcm, pieces):
            tokens = original.transcribe(to_float(piece), MAX_TOKENS)
            if tokens[-1] != moonshine.END_TOKEN:
                raise RecipeError("the original model does not end its transcript of a reference recording")
            cases.append({"audio": piece, "tokens": np.array(tokens[:-1], np.uint32)})
    return cases


def write_encoder(path: Path, weights: Weights, decoder: Weights) -> None:
    """samples [1, 384*T + 511] -> cross_keys [1, layers*heads, width, T], cross_values [1, layers*heads, T, width].

    Keys come transposed, so that scores for consecutive frames lie side by side.
    """
    g = Graph()
    x = _front_end(g, weights)
    cosines, sines = _rotary_rows(g, x, weights.inverse_frequencies)
    for layer in range(LAYERS):
        x = _encoder_layer(g, x, layer, weights, cosines, sines)
    x = g.layer_norm(x, weights.norm["norm"])
    projection = lambda kind: Weight.beside([decoder.linear[f"{layer}.encoder_attn.{kind}"] for layer in range(LAYERS)])
    split = lambda y: g.reshape(y, 0, 0, LAYERS * HEADS, HEAD_WIDTH)
    keys = g.transpose(split(g.linear(x, projection("k_proj"))), 0, 2, 3, 1)
    values = g.transpose(split(g.linear(x, projection("v_proj"))), 0, 2, 1, 3)
    heads = LAYERS * HEADS
    outputs = [(keys, "cross_keys", [1, heads, HEAD_WIDTH, "T"]), (values, "cross_values", [1, heads, "T", HEAD_WIDTH])]
    g.save(path, [("samples", np.float32, [1, "384*T+511"])], outputs)


def _front_end(g: Graph, weights: Weights) -> str:
    """Three strided convolutions take the place of a spectrogram: 384 samples a frame."""
    conv = lambda x, name, stride: g.op(
        "Conv",
        [x, g.constant(weights.conv[name])] + ([g.constant(weights.bias[name])] if name in weights.bias else []),
        strides=[stride],
        kernel_shape=[weights.conv[name].shape[2]],
    )
    x = g.op("Tanh", [conv(g.op("Unsqueeze", ["samples", g.integers(1)]), "conv1", 64)])
    x = _group_norm(g, x, *weights.group_norm)
    x = g.op("Gelu", [conv(x, "conv2", 3)])
    x = g.op("Gelu", [conv(x, "conv3", 2)])
    return g.transpose(x, 0, 2, 1)


def _group_norm(g: Graph, x: str, scale: np.ndarray, bias: np.ndarray) -> str:
    """Group normalisation with a single group: over all channels and frames."""
    mean = lambda y: g.op("ReduceMean", [y, g.integers(1, 2)], keepdims=1)
    centred = g.op("Sub", [x, mean(x)])
    variance = mean(g.op("Mul", [centred, centred]))
    deviation = g.op("Sqrt", [g.op("Add", [variance, g.constant(np.float32(1e-5))])])
    factor = g.op("Div", [g.constant(scale.reshape(1, -1, 1)), deviation])
    return g.op("Add", [g.op("Mul", [centred, factor]), g.constant(bias.reshape(1, -1, 1))])


def _encoder_layer(g: Graph, x: str, layer: int, weights: Weights, cosines: str, sines: str) -> str:
    linear = lambda y, name: g.linear(y, weights.linear[f"{layer}.{name}"], weights.bias.get(f"{layer}.{name}"))
    h = g.layer_norm(x, weights.norm[f"{layer}.input_layernorm"])
    query_key = _rotate(g, g.linear(h, _query_key(weights, layer)), cosines, sines, [0, 0])
    query, key = g.slice(query_key, 0, WIDTH, 2), g.slice(query_key, WIDTH, 2 * WIDTH, 2)
    mixed = g.op("SelfAttention", [query, key, linear(h, "self_attn.v_proj")], DOMAIN, heads=HEADS)
    x = g.op("Add", [x, linear(mixed, "self_attn.o_proj")])
    h = g.layer_norm(x, weights.norm[f"{layer}.post_attention_layernorm"])
    return g.op("Add", [x, linear(g.op("Gelu", [linear(h, "mlp.fc1")]), "mlp.fc2")])


def write_decoder(path: Path, inverse_frequencies: np.ndarray, weights: Weights) -> None:
    """One step: token [1, 1] at position [1] -> logits [1, vocabulary], new_keys, new_values [1, layers*heads, width],
    and where the token was heard: attention [1, alignment heads, T].

    The caches of earlier positions come in as past_keys [1, layers*heads, width, capacity]
    and past_values [1, layers*heads, capacity, width], of which the first `position` are valid.
    """
    g = Graph()
    table = weights.linear["proj_out"]
    x = _embed(g, table)
    cosines, sines = (g.op("Gather", [rows, "position"], axis=0) for rows in _rotary_tables(g, inverse_frequencies, MAX_TOKENS))
    keys, values, heard = [], [], []
    for layer in range(LAYERS):
        x, key, value, attention = _decoder_layer(g, x, layer, weights, cosines, sines)
        keys.append(key)
        values.append(value)
        heard += [g.slice(attention, head, head + 1, 1) for head in ALIGNMENT_HEADS.get(layer, [])]
    logits = g.linear_transposed(g.layer_norm(x, weights.norm["norm"]), table)
    join = lambda rows: g.reshape(g.op("Concat", rows, axis=2), 1, heads, HEAD_WIDTH)
    heads = LAYERS * HEADS
    inputs = [
        ("token", np.int64, [1, 1]),
        ("position", np.int64, [1]),
        ("past_keys", np.float32, [1, heads, HEAD_WIDTH, MAX_TOKENS]),
        ("past_values", np.float32, [1, heads, MAX_TOKENS, HEAD_WIDTH]),
        ("cross_keys", np.float32, [1, heads, HEAD_WIDTH, "T"]),
        ("cross_values", np.float32, [1, heads, "T", HEAD_WIDTH]),
    ]
    outputs = [
        (g.reshape(logits, 1, -1), "logits", [1, table.q.shape[1]]),
        (join(keys), "new_keys", [1, heads, HEAD_WIDTH]),
        (join(values), "new_values", [1, heads, HEAD_WIDTH]),
        (g.op("Concat", heard, axis=1), "attention", [1, len(heard), "T"]),
    ]
    g.save(path, inputs, outputs)


def _embed(g: Graph, table: Weight) -> str:
    """Dequantizes the one row that is needed; the table itself serves the output projection too."""
    row = g.op("Gather", [g.constant(table.q.T), "token"], axis=0)
    centred = g.op("Sub", [g.op("Cast", [row], to=1), g.constant(np.float32(table.zero_point[0]))])
    return g.op("Mul", [centred, g.constant(table.scale[0])])


def _decoder_layer(g: Graph, x: str, layer: int, weights: Weights, cosines: str, sines: str) -> tuple[str, str, str, str]:
    linear = lambda y, name: g.linear(y, weights.linear[f"{layer}.{name}"], weights.bias.get(f"{layer}.{name}"))
    attend = lambda outputs, *inputs: g.ops(outputs, "StepAttention", list(inputs), DOMAIN, first_head=layer * HEADS, heads=HEADS)
    h = g.layer_norm(x, weights.norm[f"{layer}.input_layernorm"])
    query_key = _rotate(g, g.linear(h, _query_key(weights, layer)), cosines, sines, [1, 1])
    query, key = g.slice(query_key, 0, WIDTH, 2), g.slice(query_key, WIDTH, 2 * WIDTH, 2)
    value = linear(h, "self_attn.v_proj")
    (mixed,) = attend(1, query, "past_keys", "past_values", "position", key, value)
    x = g.op("Add", [x, linear(mixed, "self_attn.o_proj")])
    h = g.layer_norm(x, weights.norm[f"{layer}.post_attention_layernorm"])
    query = g.linear(h, _scaled_query(weights, f"{layer}.encoder_attn.q_proj"))
    mixed, attention = attend(2, query, "cross_keys", "cross_values")
    x = g.op("Add", [x, linear(mixed, "encoder_attn.o_proj")])
    h = g.layer_norm(x, weights.norm[f"{layer}.final_layernorm"])
    both = linear(h, "mlp.fc1")
    width = weights.linear[f"{layer}.mlp.fc2"].q.shape[0]
    value_half, gate = g.slice(both, 0, width, 2), g.slice(both, width, 2 * width, 2)
    gated = g.op("Mul", [g.op("Mul", [gate, g.op("Sigmoid", [gate])]), value_half])
    return g.op("Add", [x, linear(gated, "mlp.fc2")]), key, value, attention


def _scaled_query(weights: Weights, name: str) -> Weight:
    """Attention's division by the square root of the head's width, done in the weight."""
    return weights.linear[name].scaled(HEAD_WIDTH**-0.5)


def _query_key(weights: Weights, layer: int) -> Weight:
    """Queries and keys are rotated alike, so they stay together until after that."""
    return Weight.beside([_scaled_query(weights, f"{layer}.self_attn.q_proj"), weights.linear[f"{layer}.self_attn.k_proj"]])


def _rotary_tables(g: Graph, inverse_frequencies: np.ndarray, positions: int) -> tuple[str, str]:
    """Cosines and sines [positions, 2*WIDTH] for all heads of queries and keys; 1 and 0 where nothing rotates."""
    angles = np.repeat(np.outer(np.arange(positions, dtype=np.float32), inverse_frequencies), 2, axis=1)
    still = HEAD_WIDTH - ROTARY_WIDTH
    pad = lambda values, fill: np.pad(values.astype(np.float32), ((0, 0), (0, still)), constant_values=fill)
    return tuple(g.constant(pad(*table)) for table in ((np.cos(angles), 1), (np.sin(angles), 0)))


def _rotary_rows(g: Graph, x: str, inverse_frequencies: np.ndarray) -> list[str]:
    """The tables' rows for the frames of `x`."""
    frames = g.slice(g.op("Shape", [x]), 1, 2, 0)
    tables = _rotary_tables(g, inverse_frequencies, MAX_FRAMES)
    return [g.op("Slice", [table, g.integers(0), frames, g.integers(0)]) for table in tables]


def _rotate(g: Graph, x: str, cosines: str, sines: str, leading: list[int]) -> str:
    """Rotary position embedding of interleaved pairs (a, b) -> (a cos - b sin, b cos + a sin).

    Written as x*cos + (x @ R)*sin: slices and concatenations would be pushed
    into the attention's product and split it up.
    """
    rotation = np.zeros((HEAD_WIDTH, HEAD_WIDTH), np.float32)
    even = np.arange(0, ROTARY_WIDTH, 2)
    rotation[even + 1, even], rotation[even, even + 1] = -1, 1
    heads = g.reshape(x, *leading, 2 * HEADS, HEAD_WIDTH)
    wide = lambda table: g.op("Unsqueeze", [table, g.integers(1)])
    turned = g.op("Mul", [g.op("MatMul", [heads, g.constant(rotation)]), wide(sines)])
    return g.reshape(g.op("Add", [g.op("Mul", [heads, wide(cosines)]), turned]), *leading, 2 * WIDTH)


MANIFEST = {
    "kind": "asr",
    "name": "moonshine-tiny-en",
    "version": "2",
    "license": "MIT",
    "attribution": "Moonshine tiny (English) by Useful Sensors / Moonshine AI; graphs rebuilt, weights unchanged",
    "precision": "8-bit weights, one scale a matrix, widened to f16 when loaded; f32 arithmetic",
    "front_end": {"waveform": {"sample_rate_hz": SAMPLE_RATE}},
    "output": {"shape": [0], "meaning": "token ids without start and end, from `vocabulary.txt`"},
    "parity": {"metric": "min_token_agreement", "bound": 0.97},
    "settings": {
        "start_token": moonshine.START_TOKEN,
        "end_token": moonshine.END_TOKEN,
        "heads": LAYERS * HEADS,
        "head_width": HEAD_WIDTH,
        "max_tokens": MAX_TOKENS,
        "alignment_heads": sum(map(len, ALIGNMENT_HEADS.values())),
        "min_seconds": MIN_SECONDS,
        "max_seconds": MAX_SECONDS,
        "tokens_per_second": 6.5,
        # Keeps every utterance of four speakers' groups of CMU AN4 (short words, spelled names),
        # drops what the model makes up for noise, tones and hum: there its focus is 0.27 at most,
        # on speech 0.5 and more.
        "belief": {"brief_tokens": 3, "brief": 0.55, "long": 0.35, "focus": 0.38},
    },
}
