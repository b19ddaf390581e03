"""Everything about a pool that does not depend on the head: what it is trained and measured on."""

from dataclasses import dataclass

import numpy as np

from . import voices
from .cues import cue_vector, named
from .embedding import Embedder
from .episodes import Pool, Question, eligible
from .lexical import Bm25, terms


@dataclass
class Features:
    """N records and Q questions."""

    embedding: np.ndarray
    """Of each record's document, [N, 384]."""
    previous: np.ndarray
    """Of the turn before it in its session, or zeros, [N, 384]."""
    asks: np.ndarray
    """1 for records that only ask, 0 for the others, [N]."""
    session: np.ndarray
    """[N], from 0."""
    start_s: np.ndarray
    """[N], since the session began."""
    episode: np.ndarray
    """Number of the episode, [N]."""
    question: np.ndarray
    """Embedding of each question, [Q, 384]."""
    cues: np.ndarray
    """[Q, number of cues]."""
    asked_session: np.ndarray
    """[Q]."""
    asked_episode: np.ndarray
    """[Q]."""
    speaker: np.ndarray
    """Number of the speaker, [N]."""
    voice: np.ndarray
    """Who block of each record, [N, 192]."""
    asker_voice: np.ndarray
    """The asker's centroid, or zeros where nobody is known to ask, [Q, 192]."""
    named_voice: np.ndarray
    """Sum of the centroids of the people that the question names, [Q, 192]."""
    bm25: np.ndarray
    """Over the document, as a baseline, [Q, N]."""
    lexical: np.ndarray
    """Mean of BM25 over date and text, and over these with the text before; the best record 1, [Q, N]."""
    eligible: np.ndarray
    """Which records a question may draw on, [Q, N]."""
    support: np.ndarray
    """Which records it should find, [Q, N]."""


def features(pool: Pool, embed: Embedder, rng: np.random.Generator) -> Features:
    """Computes the features of one pool; voices are drawn from `rng`."""
    records, questions = pool.records, pool.questions
    embedding = embed([record.document for record in records])
    follows = np.array([record.follows for record in records])
    numbers = {episode: number for number, episode in enumerate(dict.fromkeys(r.episode for r in records))}
    own = [terms(f"{record.date} {record.text}") for record in records]
    before = [terms(records[i - 1].text) if record.follows else [] for i, record in enumerate(records)]
    asked = [terms(question.text) for question in questions]
    alone = _score(Bm25(own), asked)
    with_context = _score(Bm25([a + b for a, b in zip(own, before, strict=True)]), asked)
    place = {person: number for number, person in enumerate(dict.fromkeys((r.episode, r.speaker) for r in records))}
    speaker = np.array([place[record.episode, record.speaker] for record in records])
    voice, centroids = _voices(speaker, rng)
    silent = np.zeros(voices.WIDTH, np.float32)

    def sum_of(question: Question, people: list[str]) -> np.ndarray:
        keys = [(question.episode, person) for person in people]
        return sum((centroids[place[key]] for key in keys if key in place), silent)

    support = np.zeros((len(questions), len(records)), bool)
    for row, question in zip(support, questions, strict=True):
        row[list(question.support)] = True
    return Features(
        embedding=embedding,
        previous=np.roll(embedding, 1, 0) * follows[:, None],
        asks=np.array([record.only_asks for record in records], np.float32),
        session=np.array([record.session for record in records], np.float32),
        start_s=np.array([record.start_s for record in records], np.float32),
        episode=np.array([numbers[record.episode] for record in records]),
        question=embed([question.text for question in questions]),
        cues=np.array([cue_vector(q.text, len(named(q.text, q.names))) for q in questions]),
        asked_session=np.array([question.session for question in questions], np.float32),
        asked_episode=np.array([numbers[question.episode] for question in questions]),
        speaker=speaker,
        voice=voice,
        asker_voice=np.array([sum_of(q, [q.asker] if q.asker else []) for q in questions]),
        named_voice=np.array([sum_of(q, named(q.text, q.names)) for q in questions]),
        bm25=_score(Bm25([terms(record.document) for record in records]), asked),
        lexical=(best_is_one(alone) + best_is_one(with_context)) / 2,
        eligible=np.array([eligible(question, records) for question in questions]),
        support=support,
    )


def best_is_one(scores: np.ndarray) -> np.ndarray:
    """Each row divided by its largest value, if that is not 0."""
    return scores / np.maximum(scores.max(1, keepdims=True), 1e-9)


def _score(index: Bm25, asked: list[list[str]]) -> np.ndarray:
    return np.array([index.score(query) for query in asked])


def _voices(speaker: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The who block of each record, and each speaker's centroid."""
    prints = voices.turns(voices.speakers(speaker.max() + 1, rng)[speaker], rng)
    centroids = np.zeros((speaker.max() + 1, voices.WIDTH), np.float32)
    np.add.at(centroids, speaker, prints)
    centroids = voices.unit(centroids)
    return voices.unit(prints + centroids[speaker]), centroids
