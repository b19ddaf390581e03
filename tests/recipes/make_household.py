"""Makes the demo's episode, `tests/data/household`, from `household.toml`.

Speaks every turn and question, lays the turns of each session on a timeline
with pauses drawn from the seed, writes `episode.json` and the FLAC clips, and
checks the result as every later reader will see it.

    make_household.py [FOLDER]
"""

import json
import random
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import soundfile

import episode
import voices

HERE = Path(__file__).parent
DEFAULT_FOLDER = HERE.parent / "data" / "household"

MAX_AUDIO_BYTES = 6 * 1024 * 1024
# Shorter speech tells a voiceprint too little.
MIN_CLIP_MS = 1200
LEAD_IN_MS = 500
PAUSE_MS = (400, 1500)
SAMPLES_PER_MS = voices.SAMPLE_RATE_HZ // 1000


class Script:
    """The dialogue as `household.toml` has it, with names and tags resolved to ids."""

    def __init__(self, path: Path):
        self.data = tomllib.loads(path.read_text(encoding="utf-8"))
        people = self.data["participants"]
        self.ids = {person["name"]: f"p{n}" for n, person in enumerate(people, start=1)}
        self.cast = {person["name"]: person for person in people}
        self.evidence = {
            turn["tag"]: turn_id for _, turns in self.sessions() for turn_id, turn in turns if "tag" in turn
        }

    def sessions(self):
        """Each session with its turns: (session, [(turn id, turn)])."""
        for s, session in enumerate(self.data["sessions"], start=1):
            turns = enumerate(session["turns"], start=1)
            yield session | {"id": f"s{s}"}, [(f"s{s}t{t:02}", turn) for t, turn in turns]

    def questions(self):
        return [(f"q{n:02}", question) for n, question in enumerate(self.data["questions"], start=1)]

    def utterance(self, line: dict) -> voices.Utterance:
        person = self.cast[line["by"]]
        return voices.Utterance(person["voice"], line["text"], person["speed"])

    def addressees(self, turn: dict) -> list[str]:
        if turn["to"] == "all":
            return [i for name, i in self.ids.items() if name != turn["by"]]
        names = [turn["to"]] if isinstance(turn["to"], str) else turn["to"]
        return [self.ids[name] for name in names]


def render(script: Script, line: dict, clip: Path) -> int:
    """Writes one line's clip and returns its length in ms, which is a whole number."""
    samples = voices.speak(script.utterance(line))
    samples = voices.level(samples, script.cast[line["by"]]["rms_dbfs"])
    samples = np.pad(samples, (0, -len(samples) % SAMPLES_PER_MS))
    soundfile.write(
        clip, samples, voices.SAMPLE_RATE_HZ, format="FLAC", subtype="PCM_16", compression_level=1.0
    )
    return len(samples) // SAMPLES_PER_MS


def make_session(script: Script, session: dict, turns: list, folder: Path, rng: random.Random) -> dict:
    now_ms, made = LEAD_IN_MS, []
    for turn_id, turn in turns:
        audio = f"audio/{turn_id}.flac"
        end_ms = now_ms + render(script, turn, folder / audio)
        made.append({
            "id": turn_id,
            "speaker": script.ids[turn["by"]],
            "addressees": script.addressees(turn),
            "text": turn["text"],
            "start_ms": now_ms,
            "end_ms": end_ms,
            "audio": audio,
        })
        now_ms = end_ms + rng.randint(*PAUSE_MS)
    return {"id": session["id"], "start": session["start"], "turns": made}


def make_question(script: Script, question_id: str, question: dict, folder: Path) -> dict:
    audio = f"audio/{question_id}.flac"
    render(script, question, folder / audio)
    return {
        "id": question_id,
        "session": f"s{len(script.data['sessions'])}",
        "asker": script.ids[question["by"]],
        "text": question["text"],
        "audio": audio,
        "task": question["task"],
        "speaker_query": question["speaker_query"],
        "answer": question["answer"],
        "evidence": [script.evidence[tag] for tag in question["evidence"]],
    }


def make_episode(script: Script, folder: Path) -> dict:
    rng = random.Random(script.data["seed"])
    return {
        "id": script.data["id"],
        "scenario": script.data["scenario"],
        "source": "generated",
        "participants": [
            {"id": script.ids[name], "name": name, "aliases": person.get("aliases", [])}
            for name, person in script.cast.items()
        ],
        "sessions": [make_session(script, s, turns, folder, rng) for s, turns in script.sessions()],
        "questions": [make_question(script, i, q, folder) for i, q in script.questions()],
    }


def check_household(script: Script, made: dict, folder: Path) -> list[str]:
    """What this episode owes its readers beyond the format."""
    texts = {turn["id"]: turn["text"] for session in made["sessions"] for turn in session["turns"]}
    problems = [
        f"{question['id']}: no evidence says {question['answer']!r}"
        for question in made["questions"]
        if is_quotable(question) and not any(question["answer"] in texts[turn] for turn in question["evidence"])
    ]
    clips = list((folder / "audio").iterdir())
    for clip in clips:
        if soundfile.info(clip).duration * 1000 < MIN_CLIP_MS:
            problems.append(f"{clip.name} is shorter than {MIN_CLIP_MS} ms")
    size = sum(clip.stat().st_size for clip in clips)
    if size > MAX_AUDIO_BYTES:
        problems.append(f"the clips take {size} bytes, at most {MAX_AUDIO_BYTES} are allowed")
    if len({person["voice"] for person in script.cast.values()}) < len(script.cast):
        problems.append("two participants share a voice")
    return problems


def is_quotable(question: dict) -> bool:
    """Whether the answer stands in the evidence: not when it is the speaker, a date, or silence."""
    return (
        question["evidence"]
        and question["speaker_query"] != "fact_to_person"
        and question["task"] != "temporal_localization"
    )


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else DEFAULT_FOLDER
    script = Script(HERE / "household.toml")
    lines = [turn for _, turns in script.sessions() for _, turn in turns]
    voices.prepare([script.utterance(line) for line in lines + script.data["questions"]])

    shutil.rmtree(folder / "audio", ignore_errors=True)
    (folder / "audio").mkdir(parents=True)
    made = make_episode(script, folder)
    (folder / "episode.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    problems = episode.check(folder) + check_household(script, made, folder)
    if problems:
        sys.exit("\n".join(problems))
    print(episode.summary(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
