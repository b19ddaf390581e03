"""A peer of `cargo xtask bench retrieval`: exact search of the three best by inner product, one thread.

Reads int8 keys and queries from a file, the queries first, and the number of a query from each
line of standard input. Answers with the milliseconds of processor time that the search took
and the rows that it found, so that the two sides can take turns. All searches of a peer give
the same rows as ours, up to what its own arithmetic rounds; sqlite-vec knows no inner product
and ranks by distance, which costs the same.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata

import numpy as np

BEST = 3
CHUNK = 4096
Search = Callable[[np.ndarray], list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("file")
    parser.add_argument("width", type=int)
    parser.add_argument("queries", type=int)
    arguments = parser.parse_args()
    rows = np.memmap(arguments.file, np.int8, "r").reshape(-1, arguments.width)
    package, start = ENGINES[arguments.engine]
    search = start(rows[arguments.queries :])
    print(json.dumps({"name": f"{arguments.engine} {metadata.version(package)}"}), flush=True)
    for line in sys.stdin:
        query = np.array(rows[int(line)])
        started = time.process_time()
        found = search(query)
        took = (time.process_time() - started) * 1e3
        print(json.dumps({"ms": took, "rows": [int(row) for row in found]}), flush=True)


def faiss_flat(keys: np.ndarray) -> Search:
    import faiss

    return _faiss(faiss.IndexFlatIP(keys.shape[1]), keys)


def faiss_scalar(keys: np.ndarray) -> Search:
    import faiss

    return _faiss(faiss.IndexScalarQuantizer(keys.shape[1], faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT), keys)


def _faiss(index, keys: np.ndarray) -> Search:
    import faiss

    faiss.omp_set_num_threads(1)
    if not index.is_trained:
        index.train(keys[: 4 * CHUNK].astype(np.float32))
    for chunk in _chunks(keys):
        index.add(chunk.astype(np.float32))
    return lambda query: index.search(query[None].astype(np.float32), BEST)[1][0]


def usearch_exact(keys: np.ndarray) -> Search:
    from usearch.index import MetricKind, search

    # In memory, as the others have it.
    keys = np.array(keys)
    return lambda query: search(keys, query, BEST, MetricKind.IP, exact=True, threads=1).keys


def sqlite_vec(keys: np.ndarray) -> Search:
    import apsw
    import sqlite_vec

    database = apsw.Connection(":memory:")
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    database.execute(f"create virtual table keys using vec0(key int8[{keys.shape[1]}])")
    with database:
        rows = ((row, key.tobytes()) for row, key in enumerate(keys))
        database.executemany("insert into keys(rowid, key) values (?, vec_int8(?))", rows)
    ask = f"select rowid from keys where key match vec_int8(?) and k = {BEST}"
    return lambda query: [row for (row,) in database.execute(ask, (query.tobytes(),))]


def _chunks(keys: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(keys), CHUNK):
        yield keys[start : start + CHUNK]


ENGINES = {
    "faiss flat f32": ("faiss-cpu", faiss_flat),
    "faiss 8-bit": ("faiss-cpu", faiss_scalar),
    "usearch exact int8": ("usearch", usearch_exact),
    "sqlite-vec int8": ("sqlite-vec", sqlite_vec),
}


if __name__ == "__main__":
    main()
