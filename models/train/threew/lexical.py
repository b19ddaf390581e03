"""BM25 with English stemming (Okapi, k1 = 1.2, b = 0.75), as a dense score for every record."""

from collections import Counter, defaultdict
from functools import cache

import numpy as np
import snowballstemmer

from .cues import words

K1, B = 1.2, 0.75
#: Words that say nothing about what a record is about.
STOP = frozenset(
    "a about after all also am an and any are as at be been before being but by can could did do does doing done for "
    "from had has have he her hers him his how i if in into is it its just me my no nor not of off on or our out over "
    "own s she so some such t than that the their them then there these they this those through to too under until up "
    "us very was we were what when where which while who whom whose why will with would you your ll m re ve d".split()
)
_STEMMER = snowballstemmer.stemmer("english")


@cache
def stem(word: str) -> str:
    """The stem of a lower-case word."""
    return _STEMMER.stemWord(word)


def terms(text: str) -> list[str]:
    """The stems of a text, without stop words."""
    return [stem(word) for word in words(text) if word not in STOP]


class Bm25:
    """An index over documents that are given as lists of terms."""

    def __init__(self, documents: list[list[str]]):
        self._count = len(documents)
        lengths = np.array([len(document) for document in documents], np.float32)
        norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, document in enumerate(documents):
            for term, frequency in Counter(document).items():
                postings[term].append((place, frequency))
        self._postings = {term: self._weigh(np.array(found), norm) for term, found in postings.items()}

    def _weigh(self, found: np.ndarray, norm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places, frequency = found[:, 0], found[:, 1].astype(np.float32)
        idf = np.log(1 + (self._count - len(places) + 0.5) / (len(places) + 0.5))
        return places, idf * frequency * (K1 + 1) / (frequency + norm[places])

    def score(self, query: list[str]) -> np.ndarray:
        """The score of each document."""
        scores = np.zeros(self._count, np.float32)
        for term in query:
            if term in self._postings:
                places, weights = self._postings[term]
                scores[places] += weights
        return scores
