"""Episodes as records and questions, with the pools and rules of the project's evaluation.

The definitions are those of `tests/src/retrieval/pool.rs`: a record is a turn with
its speaker and date, history ends before the session of a question (later where
the evidence says so), and episodes are dealt into pools in the order of their scenarios.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """A turn as the memory keeps it."""

    episode: str
    speaker: str
    """The participant's id, unique within the episode."""
    name: str
    session: int
    """From 0, in the order of time."""
    start_s: float
    """Since the session began."""
    date: str
    text: str
    follows: bool
    """Whether the record before it in the pool is the turn before it."""

    @property
    def only_asks(self) -> bool:
        """Whether every sentence is a question: who asks where the keys are does not say where they are."""
        ends = [character for character in self.text if character in ".!?"]
        return bool(ends) and set(ends) == {"?"}

    @property
    def document(self) -> str:
        """What text retrievers see."""
        return f"{self.name} ({self.date}): {self.text}"


@dataclass(frozen=True)
class Question:
    """A question, with what it may draw on and what it should find."""

    episode: str
    asker: str | None
    names: dict[str, tuple[str, ...]]
    """The names of each participant of the episode."""
    session: int
    history: int
    """How many sessions of its episode are history to it."""
    text: str
    task: str
    speaker_query: str | None
    support: frozenset[int]
    """The places of the supporting records in the pool."""


@dataclass
class Pool:
    """A memory and the questions to it."""

    records: list[Record] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def load(folder: Path) -> list[dict]:
    """All episodes of a data set, in the order of their folders."""
    files = sorted(folder.glob("*/episode.json"))
    if not files:
        raise SystemExit(f"{folder} holds no episode; name a folder whose folders hold an episode.json")
    return [json.loads(file.read_text()) for file in files]


def pools(episodes: list[dict], records: int | None) -> list[Pool]:
    """Deals the episodes into pools of about `records` records, or each into its own."""
    if records is None:
        count = len(episodes)
    else:
        total = sum(len(s["turns"]) for e in episodes for s in e["sessions"][: _history(e)[1]])
        count = max(1, min(-(-total // records), len(episodes)))
    dealt = sorted(episodes, key=lambda e: (e.get("scenario") or "", e["id"]))
    made = [Pool() for _ in range(count)]
    for card, episode in enumerate(dealt):
        _add(made[card % count], episode)
    return made


def _history(episode: dict) -> tuple[list[int], int]:
    """For each session, how many sessions are history to questions in it; and the most of these."""
    place = {s["id"]: i for i, s in enumerate(episode["sessions"])}
    of_turn = {t["id"]: i for i, s in enumerate(episode["sessions"]) for t in s["turns"]}
    lengths = list(range(len(place)))
    for question in episode["questions"]:
        asked = place[question["session"]]
        lengths[asked] = max([lengths[asked], *(of_turn[t] + 1 for t in question["evidence"] if t in of_turn)])
    return lengths, max((lengths[place[q["session"]]] for q in episode["questions"]), default=len(place))


def _add(pool: Pool, episode: dict) -> None:
    lengths, most = _history(episode)
    names = {p["id"]: (p["name"], *(p.get("aliases") or ())) for p in episode["participants"]}
    places = {}
    for number, session in enumerate(episode["sessions"][:most]):
        for turn_number, turn in enumerate(session["turns"]):
            places[turn["id"]] = len(pool.records)
            pool.records.append(_record(episode["id"], names, number, session, turn, turn_number > 0))
    index = {s["id"]: i for i, s in enumerate(episode["sessions"])}
    for question in episode["questions"]:
        session = index[question["session"]]
        support = frozenset(places[t] for t in question["evidence"] if t in places)
        text, task, kind = question["text"], question["task"], question.get("speaker_query")
        asker = question.get("asker")
        pool.questions.append(
            Question(episode["id"], asker, names, session, lengths[session], text, task, kind, support)
        )


def _record(episode: str, names: dict, number: int, session: dict, turn: dict, follows: bool) -> Record:
    start = datetime.fromisoformat(session["start"].replace("Z", "+00:00"))
    said = start + timedelta(milliseconds=turn["start_ms"])
    captions = [a["caption"] for a in turn.get("attachments") or () if a.get("caption")]
    text = " ".join([turn.get("text") or "", *captions])
    date = f"{said.day} {said:%B %Y}"
    return Record(
        episode, turn["speaker"], names[turn["speaker"]][0], number, turn["start_ms"] / 1000, date, text, follows
    )


def eligible(question: Question, records: Iterable[Record]) -> list[bool]:
    """Which records a question may draw on: history in its own episode, all of the others."""
    return [r.episode != question.episode or r.session < question.history for r in records]
