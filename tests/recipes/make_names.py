"""Speaks the sentences of `../data/names`: names that are written otherwise than they sound."""

from pathlib import Path

import soundfile
from voices import SAMPLE_RATE_HZ, Utterance, level, speak

OUT = Path(__file__).parent.parent / "data/names"
SENTENCES = {
    "carol": ("bm_george", "I gave the spare keys to Carol."),
    "thaxted": ("am_puck", "We are driving to Thaxted on Saturday."),
}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name, (voice, text) in SENTENCES.items():
        samples = level(speak(Utterance(voice, text)), rms_dbfs=-22.0)
        soundfile.write(OUT / f"{name}.flac", samples, SAMPLE_RATE_HZ, subtype="PCM_16")


if __name__ == "__main__":
    main()
