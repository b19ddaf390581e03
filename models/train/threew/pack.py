"""Writes a trained head as a pack of kind `threew`."""

from pathlib import Path

import numpy as np

from recipes import embed
from recipes.common import write_pack, write_parity

from . import head
from .cues import CUE_NAMES, CUES, cue_vector
from .embedding import WIDTH, Embedder
from .head import Params
from .lexical import STOP

#: A question, how many people it names, and a record with the turn before it, its session and its time in it.
REFERENCES = (
    ("When did I originally plan to leave?", 0, "Alice (2 March 2026): I plan to leave on Monday.", None, 0, 12.5),
    ("Where is Bob going to have dinner now?", 1, "Bob (9 March 2026): The Green Lantern, I think.",
     "Alice (9 March 2026): Bob, where will you eat?", 1, 300.0),
    ("Where is Bob going to have dinner now?", 1, "Alice (9 March 2026): Bob, where will you eat?", None, 1, 290.0),
    ("Who said they'd bring the cake?", 0, "Carol (1 May 2026): I'll bring the cake.",
     "Bob (1 May 2026): Anything else?", 40, 0.0),
    ("How did our plan change, what are Alice and Bob doing instead?", 2, "Alice (3 May 2026): We go by train instead.",
     None, 7, 3600.0),
)  # fmt: skip


def write(params: Params, embedder: Embedder, out: Path) -> None:
    """Writes weights, parity vectors and manifest into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    head.save(params, out / "head.safetensors")
    write_parity(out, [_reference(params, embedder, *reference) for reference in REFERENCES])
    write_pack(out, _manifest(), [])


def _reference(
    params: Params, embedder: Embedder, question: str, people: int, record: str, before: str | None, session: int, start: float
) -> dict[str, np.ndarray]:
    asked, embedding = embedder([question])[0], embedder([record])[0]
    previous = embedder([before])[0] if before else np.zeros(WIDTH, np.float32)
    asks = np.float32(record.endswith("?"))
    cues = cue_vector(question, people)
    state = head.question_state(asked, cues)
    asked_time = head.time_features(np.float32(session + 1), np.float32(0))
    record_time = head.time_features(np.float32(session), np.float32(start))
    gates = head.gates(params, state)
    outputs = {
        "what": head.semantic_query(params, asked),
        "when": gates[2] * head.temporal_query(params, state, asked_time),
        "voices": gates[:2],
        "semantic_key": head.semantic_key(params, embedding, previous, asks),
        "temporal_key": head.temporal_key(params, record_time),
    }
    return {
        "text": np.frombuffer(question.encode(), np.uint8),
        "people": np.array([people], np.uint32),
        "question": asked,
        "embedding": embedding,
        "previous": previous,
        "asks": asks.reshape(1),
        "session": np.array([session], np.uint32),
        "start_ms": np.array([start * 1000], np.uint32),
        **{name: np.asarray(value, np.float32) for name, value in outputs.items()},
    }


def _manifest() -> dict:
    return {
        "kind": "threew",
        "name": "spokentrace-threew",
        "version": "1",
        "license": "MIT OR Apache-2.0",
        "attribution": "Trained by this project on SpokenTrace episodes that it generates; no other data",
        "precision": "f32",
        "front_end": {"sentence": {"pack": embed.MANIFEST["name"], "width": WIDTH}},
        "output": {"shape": [WIDTH, 0, head.TIME_WIDTH], "meaning": "semantic, speaker and temporal block; a voiceprint of any length"},
        "parity": {"metric": "max_abs_difference", "bound": 1e-5},
        "settings": {
            "context": head.CONTEXT,
            "lexical": head.LEXICAL,
            "glance": head.GLANCE,
            "gates": list(head.GATES),
            "ceiling": list(head.CEILING),
            "cues": list(CUE_NAMES),
            "words": {name: words.split() for name, words in CUES.items()},
            "stop": sorted(STOP),
            "session_scales": list(head.SESSION_SCALES),
            "second_scales": list(head.SECOND_SCALES),
        },
    }
