"""What a pack's graphs give in onnxruntime: the same search as the runtime's, written plainly."""

from collections import defaultdict
from pathlib import Path

import kaldi_native_fbank
import numpy as np
import onnxruntime

from ..common import SAMPLE_RATE, to_float


class Reference:
    """The graphs of one pack."""

    def __init__(self, pack: Path, front_end: dict, settings: dict):
        self.front_end, self.settings = front_end, settings
        graph = lambda name: onnxruntime.InferenceSession(pack / f"{name}.onnx")
        self.encoder = graph("encoder")
        if settings["architecture"] == "transducer":
            self.decoder, self.joiner = graph("decoder"), graph("joiner")
            self.context = self.decoder.get_inputs()[0].shape[1]
        self.repeats_are_one = settings["architecture"] == "ctc"

    def tokens(self, pcm: np.ndarray) -> np.ndarray:
        """The token ids of a recording."""
        beam = {(): (0.0, -np.inf)}
        for frame in self._encode(to_float(pcm)):
            beam = self._extend(beam, frame)
        best = max(beam, key=lambda tokens: np.logaddexp(*beam[tokens]))
        return np.array(best, np.uint32)

    def _extend(self, beam: dict, frame: np.ndarray) -> dict:
        """The likeliest tokens after one more frame, each with the logarithms of two probabilities: of all ways
        to them in which the last token is over, and of those in which it may go on."""
        grown = defaultdict(lambda: (-np.inf, -np.inf))
        add = lambda tokens, over, going_on: grown.__setitem__(tokens, tuple(np.logaddexp(grown[tokens], (over, going_on))))
        blank = self.settings["blank"]
        for tokens, (over, going_on) in beam.items():
            scores = self._scores(frame, tokens)
            either = np.logaddexp(over, going_on)
            repeated = tokens[-1] if self.repeats_are_one and tokens else None
            add(tokens, either + scores[blank], going_on + scores[repeated] if repeated is not None else -np.inf)
            for token in range(len(scores)):
                score = (over if token == repeated else either) + scores[token]
                if token != blank:
                    add((*tokens, token), *((-np.inf, score) if self.repeats_are_one else (score, -np.inf)))
        best = sorted(grown, key=lambda tokens: -np.logaddexp(*grown[tokens]))
        return {tokens: grown[tokens] for tokens in best[: self.settings["beam"]]}

    def _scores(self, frame: np.ndarray, tokens: tuple) -> np.ndarray:
        """Logarithms of the probabilities of all tokens."""
        logits = frame
        if not self.repeats_are_one:
            seen = [*[-1] * (self.context - 1), 0, *tokens][-self.context :]
            (decoded,) = _run(self.decoder, [np.array([seen], np.int64)])
            logits = _run(self.joiner, [frame[None], decoded])[0][0]
        return logits - np.logaddexp.reduce(logits)

    def _encode(self, samples: np.ndarray) -> np.ndarray:
        """All frames of the encoder."""
        states = [np.zeros(i.shape, np.int64 if "int64" in i.type else np.float32) for i in self.encoder.get_inputs()[1:]]
        chunk, shift = self.encoder.get_inputs()[0].shape[1], self.settings["chunk_shift"]
        features = self._features(samples, chunk, shift)
        frames = []
        for start in range(0, len(features) - chunk + 1, shift):
            out, *states = _run(self.encoder, [features[None, start : start + chunk], *states])
            frames.extend(out[0])
        return np.array(frames)

    def _features(self, samples: np.ndarray, chunk: int, shift: int) -> np.ndarray:
        """Features of whole chunks, with silence after the end."""
        hop = SAMPLE_RATE // 100
        wanted = -(-(len(samples) + int(self.settings["tail_seconds"] * SAMPLE_RATE)) // hop)
        frames = chunk + max(0, -(-(wanted - chunk) // shift)) * shift
        padded = np.zeros((frames + 2) * hop, np.float32)
        padded[: len(samples)] = samples
        options = kaldi_native_fbank.FbankOptions()
        options.frame_opts.dither = 0
        options.frame_opts.snip_edges = False
        options.mel_opts.num_bins = self.front_end["mel_bins"]
        options.mel_opts.low_freq, options.mel_opts.high_freq = self.front_end["low_hz"], self.front_end["high_hz"]
        fbank = kaldi_native_fbank.OnlineFbank(options)
        fbank.accept_waveform(SAMPLE_RATE, padded.tolist())
        return np.array([fbank.get_frame(i) for i in range(frames)], np.float32)


def _run(session: onnxruntime.InferenceSession, inputs: list[np.ndarray]) -> list[np.ndarray]:
    return session.run(None, {given.name: value for given, value in zip(session.get_inputs(), inputs)})
