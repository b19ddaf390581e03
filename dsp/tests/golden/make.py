#!/usr/bin/env python3.11
"""Makes the golden features that `kaldi_parity.rs` compares against.

    pip install kaldi-native-fbank==1.23.0 numpy==2.2.6
    python dsp/tests/golden/make.py

Writes beside itself `signal.i16` (16-bit samples, little-endian) and for each
case `NAME.f32` (log mel energies, frame after frame, little-endian). The
cases stand in `kaldi_parity.rs` under the same names.
"""

from pathlib import Path

import kaldi_native_fbank as knf
import numpy as np

HERE = Path(__file__).parent
SAMPLES = 5_000


def signal():
    """Noise, a chirp over noise, silence, a clipped low tone on an offset."""
    state, phase, out = 1, 0, []
    for i in range(SAMPLES):
        state = (state * 1664525 + 1013904223) % 2**32
        noise = (state >> 16) - 2**15
        phase = (phase + 40 * i) % 2**20
        part = i * 4 // SAMPLES
        if part == 0:
            sample = noise // 8
        elif part == 1:
            sample = int(12_000 * np.sin(2 * np.pi * phase / 2**20)) + noise // 64
        elif part == 2:
            sample = 0
        else:
            sample = 3_000 + int(40_000 * np.sin(2 * np.pi * i / 80)) + noise // 256
        out.append(max(-(2**15), min(2**15 - 1, sample)))
    return np.array(out, dtype="<i2")


def fbank(samples, *, scale=1.0, rate=16_000, length_ms=25, shift_ms=10, bins=80, low=20, high=0,
          window="povey", preemphasis=0.97, dc=True, mean=False):
    options = knf.FbankOptions()
    options.frame_opts.samp_freq = rate
    options.frame_opts.frame_length_ms = length_ms
    options.frame_opts.frame_shift_ms = shift_ms
    options.frame_opts.dither = 0
    options.frame_opts.preemph_coeff = preemphasis
    options.frame_opts.remove_dc_offset = dc
    options.frame_opts.window_type = window
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = bins
    options.mel_opts.low_freq = low
    options.mel_opts.high_freq = high
    stream = knf.OnlineFbank(options)
    stream.accept_waveform(rate, (samples / 32_768 * scale).astype(np.float32).tolist())
    stream.input_finished()
    frames = np.stack([stream.get_frame(i) for i in range(stream.num_frames_ready)])
    return frames - frames.mean(axis=0, dtype=np.float64) if mean else frames


CASES = {
    "kaldi": dict(scale=32_768),
    "hamming_mean": dict(scale=32_768, window="hamming", mean=True),
    "unit_scale": dict(window="hamming", low=0, high=7_600),
    "plain_hann": dict(window="hanning", bins=40, high=-400, preemphasis=0, dc=False),
    "telephone": dict(scale=32_768, rate=8_000, window="rectangular", bins=23),
    "full_fft": dict(length_ms=32, shift_ms=16, bins=64),
}


def main():
    samples = signal()
    (HERE / "signal.i16").write_bytes(samples.tobytes())
    for name, options in CASES.items():
        (HERE / f"{name}.f32").write_bytes(fbank(samples, **options).astype("<f4").tobytes())


if __name__ == "__main__":
    main()
