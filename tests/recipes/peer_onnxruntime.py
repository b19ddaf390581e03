"""The peer of `cargo xtask bench voiceprint`: the same model in onnxruntime, one thread.

Reads a number of runs from each line of standard input and answers with the
milliseconds of processor time that they took together, so that the two sides can take turns.
"""

import argparse
import sys
import time

import numpy as np
import onnxruntime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="an ONNX file with one input [1, frames, bins]")
    parser.add_argument("frames", type=int)
    parser.add_argument("bins", type=int)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(arguments.model, options)
    features = np.random.default_rng(1).normal(size=(1, arguments.frames, arguments.bins)).astype(np.float32)
    feed = {session.get_inputs()[0].name: features}
    print(onnxruntime.__version__, flush=True)
    for line in sys.stdin:
        start = time.process_time()
        for _ in range(int(line)):
            session.run(None, feed)
        print((time.process_time() - start) * 1e3, flush=True)


if __name__ == "__main__":
    main()
