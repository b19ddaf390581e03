"""Checks an episode that a recipe made: what the format promises, sound included.

Stricter than the format in one thing: only the tasks that it names are known.

    episode.py FOLDER...
"""

import json
import sys
from collections import Counter
from pathlib import Path

import soundfile

SAMPLE_RATE_HZ = 16_000
MAX_PEAK = 0.99

TASKS = {
    "direct_recall",
    "temporal_localization",
    "latest_state",
    "historical_state",
    "change_comparison",
    "multi_hop",
    "current_only",
    "missing_evidence",
}
TASKS_WITHOUT_EVIDENCE = {"current_only", "missing_evidence"}
SPEAKER_QUERIES = {"speaker_independent", "self_to_fact", "person_to_fact", "fact_to_person", None}


def check(folder: Path) -> list[str]:
    """The episode's faults, one sentence each; none means it is sound."""
    episode = json.loads((folder / "episode.json").read_text(encoding="utf-8"))
    return [
        *_check_ids(episode),
        *_check_sessions(episode, folder),
        *_check_questions(episode, folder),
    ]


def summary(folder: Path) -> str:
    """One line on what the episode holds."""
    episode = json.loads((folder / "episode.json").read_text(encoding="utf-8"))
    items = _turns(episode) + episode["questions"]
    clips = {folder / item["audio"] for item in items if item.get("audio")}
    seconds = sum(soundfile.info(clip).duration for clip in clips)
    size = sum(clip.stat().st_size for clip in clips)
    return (
        f"{folder}: {len(episode['participants'])} participants, {len(episode['sessions'])} sessions, "
        f"{len(_turns(episode))} turns, {len(episode['questions'])} questions, "
        f"{seconds:.0f} s of sound in {len(clips)} clips of {size / 2**20:.2f} MiB"
    )


def _turns(episode: dict) -> list[dict]:
    return [turn for session in episode["sessions"] for turn in session["turns"]]


def _check_ids(episode: dict):
    for kind, items in {
        "participant": episode["participants"],
        "session": episode["sessions"],
        "turn": _turns(episode),
        "question": episode["questions"],
    }.items():
        for name, count in Counter(item["id"] for item in items).items():
            if count > 1:
                yield f"{kind} id {name} is used {count} times"


def _check_sessions(episode: dict, folder: Path):
    people = {person["id"] for person in episode["participants"]}
    starts = [session["start"] for session in episode["sessions"]]
    if starts != sorted(set(starts)):
        yield "sessions do not follow one another"
    for session in episode["sessions"]:
        free_from_ms = 0
        for turn in session["turns"]:
            yield from _check_turn(turn, people, folder)
            if turn["start_ms"] < free_from_ms:
                yield f"{turn['id']} begins before the turn before it ends"
            free_from_ms = turn["end_ms"]


def _check_turn(turn: dict, people: set[str], folder: Path):
    addressees = turn.get("addressees") or []
    if not {turn["speaker"], *addressees} <= people:
        yield f"{turn['id']} names somebody who is not a participant"
    if turn["speaker"] in addressees:
        yield f"{turn['id']} is addressed to its own speaker"
    length_ms = turn["end_ms"] - turn["start_ms"]
    if length_ms <= 0:
        yield f"{turn['id']} ends before it begins"
    yield from _check_clip(turn, folder, length_ms)


def _check_questions(episode: dict, folder: Path):
    people = {person["id"] for person in episode["participants"]}
    sessions = {session["id"] for session in episode["sessions"]}
    turns = {turn["id"] for turn in _turns(episode)}
    for question in episode["questions"]:
        name = question["id"]
        if question["task"] not in TASKS:
            yield f"{name} has an unknown task {question['task']!r}"
        if question.get("speaker_query") not in SPEAKER_QUERIES:
            yield f"{name} has an unknown speaker query {question['speaker_query']!r}"
        if question.get("asker") not in {*people, None} or question["session"] not in sessions:
            yield f"{name} names an asker or a session that does not exist"
        if not set(question["evidence"]) <= turns:
            yield f"{name} rests on a turn that does not exist"
        if bool(question["evidence"]) == (question["task"] in TASKS_WITHOUT_EVIDENCE):
            yield f"{name}: evidence does not go with the task {question['task']}"
        yield from _check_clip(question, folder)


def _check_clip(item: dict, folder: Path, length_ms: int | None = None):
    if not item.get("audio"):
        return
    samples, rate_hz = soundfile.read(folder / item["audio"], always_2d=True)
    if (rate_hz, samples.shape[1]) != (SAMPLE_RATE_HZ, 1):
        yield f"{item['audio']} has {rate_hz} Hz and {samples.shape[1]} channels, not {SAMPLE_RATE_HZ} and 1"
    if abs(samples).max() > MAX_PEAK:
        yield f"{item['audio']} clips"
    if length_ms is not None and len(samples) * 1000 != length_ms * rate_hz:
        yield f"{item['audio']} lasts {len(samples) * 1000 / rate_hz} ms, its turn {length_ms}"


def main(folders: list[str]) -> None:
    if not folders:
        sys.exit(__doc__)
    problems = [f"{folder}: {problem}" for folder in folders for problem in check(Path(folder))]
    if problems:
        sys.exit("\n".join(problems))
    for folder in folders:
        print(summary(Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
