"""What a question's own words say about who is meant and which state is asked for."""

import re

import numpy as np

#: Closed-class words by what they turn to; a question's cue vector has one number for each.
CUES = {
    "self": "i me my mine myself",
    "all": "we us our ours ourselves everybody everyone",
    "who": "who whom whose somebody someone anybody anyone",
    "earliest": "originally original first initially initial beginning begin start started earlier before previously "
    "previous old former formerly used",
    "latest": "now currently current latest newest recent recently last lately finally final end ended after today "
    "still update updated nowadays these",
    "change": "change changed changes shift shifted switch switched differ difference compare compared replaced "
    "instead swap swapped both then later",
    "when": "when date day time ago long meeting conversation session",
}
#: The names of the numbers of a cue vector.
CUE_NAMES = (*CUES, "named", "several")
_OF_WORD = {word: place for place, words in enumerate(CUES.values()) for word in words.split()}


def words(text: str) -> list[str]:
    """The lower-case words of a text; what follows an apostrophe is a word of its own."""
    return re.findall(r"[^\W_]+", text.lower())


def cue_vector(text: str, people: int) -> np.ndarray:
    """1 for each cue that a text has, 0 otherwise; `people` are named in it."""
    found = np.zeros(len(CUE_NAMES), np.float32)
    found[[_OF_WORD[word] for word in words(text) if word in _OF_WORD]] = 1
    found[-2:] = people > 0, people > 1
    return found


def named(text: str, names: dict[str, tuple[str, ...]]) -> list[str]:
    """The participants that a question names, by any of their names."""
    spoken = f" {' '.join(words(text))} "
    return [person for person, known in names.items() if any(f" {' '.join(words(name))} " in spoken for name in known)]
