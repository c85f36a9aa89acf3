"""The time from the start of a grower to a new tree of a large log, with saved growth and without, and its disk space.

Run: python bench/restart.py [--rows 1000000] [--algorithms active-forest,abc45] [--engine-alone]

Rows of stream B (10 numbers, 3 classes), all labelled, are pushed into a store on the disk; a grower reads them and is
killed (SIGKILL) once its growth is saved. Then more rows are pushed and a grower starts: seconds from the start of its
process to the tree that contains them. Last, the same without the saved growth.

With --engine-alone, one process holds the tree: CPU time to read its file and to grow 1,000 more rows, with the saved
tree, and with a tree grown again from the evidence. No store, so that ten million rows take minutes, not an hour.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _measure import cpu_s
from _streams import numeric, train
from models import resident_bytes

from quercus.belief.codec import encode_sets
from quercus.server.growth import saved_growth
from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.server.growth.grown_trees import specification_of
from quercus.server.growth.saved_columns import SavedEngine, read_columns, write_columns
from quercus.server.wire.limits import GROWTH_ROWS
from quercus.server.wire.models import complete_specification
from quercus.storage import InstanceColumns, Store
from quercus.v1 import model_pb2

CHUNK, TAILS = 10_000, (50, 1_000)
WAIT_S = 3600.0
REST = 100_000
"""Rows that a restart may have to read again: a quarter of a second of folding is not worth a file."""

TREE_COLUMNS = {"abc45": "tree.", "active-forest": "tree.tree."}
"""Beginning of the names of the columns of the tree itself, without its evidence."""


def specification(algorithm: str, attributes: int, classes: int) -> bytes:
    message = model_pb2.Specification(
        attributes=[
            model_pb2.Attribute(name=f"a{k}", numeric=model_pb2.NumericAttribute()) for k in range(attributes)
        ],
        classes=[f"c{c}" for c in range(classes)],
        budget=1_000,
    )
    getattr(message.algorithm, algorithm.replace("-", "_")).SetInParent()
    return complete_specification(message).SerializeToString(deterministic=True)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"nothing came in {WAIT_S:.0f} s")
        time.sleep(0.01)


def started(store: Store) -> subprocess.Popen:
    command = [sys.executable, "-m", "quercus.server.growth.grower", store.url, "--log-level", "warning"]
    # where bytecode may not be kept, every start would compile all modules again, for two seconds
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def stored_bytes(path: Path) -> int:
    """Bytes on the disk: the room behind columns takes none."""
    return 512 * path.stat().st_blocks


def killed(grower: subprocess.Popen) -> None:
    grower.kill()
    grower.wait()


def grown(store: Store) -> tuple[float, float, float]:
    """Seconds, CPU seconds and resident MB of a grower that starts, until its tree has all rows."""
    began = time.perf_counter()
    grower = started(store)
    wait_until(lambda: store.get_model("m").sequence_grown == store.get_model("m").sequence_committed)
    took = time.perf_counter() - began, cpu_s(grower.pid), resident_bytes(grower.pid) / 1e6
    killed(grower)
    return took


def measure(algorithm: str, rows: int, folder: Path) -> None:
    X, y = train(stream := numeric(), rows + 3 * max(TAILS))
    with Store.open(f"sqlite:///{folder / 'store.db'}") as store:

        def push(begin: int, end: int) -> None:
            labels = encode_sets((1 << y[begin:end]).astype(np.uint64))
            store.append_instances("m", [f"i{n}" for n in range(begin, end)], X[begin:end], labels)

        store.create_model("m", specification(algorithm, X.shape[1], stream.classes), budget=1_000)
        file = store.beside(saved_growth.SUFFIX) / f"{store.get_model('m').uid}{saved_growth.ENDING}"
        for begin in range(0, rows, CHUNK):
            push(begin, min(begin + CHUNK, rows))
        grower = started(store)
        wait_until(lambda: store.get_model("m").sequence_grown == rows and file.exists())
        held = [0, 0]  # when the file was written, and how many events it holds

        def is_saved() -> bool:
            """The file has nearly all: one that was written on the way has less, and the next may be long in coming."""
            if file.stat().st_mtime_ns != held[0]:
                held[:] = file.stat().st_mtime_ns, int(read_columns(file)[0]["sequence"])
            return rows - held[1] <= REST and not list(file.parent.glob("*.part"))

        wait_until(is_saved)
        killed(grower)
        size = stored_bytes(file)
        print(
            f"{algorithm}, {rows:,} rows: saved growth of {held[1]:,}, {size / 1e6:.0f} MB, "
            f"{size / held[1]:.0f} bytes a row",
            flush=True,
        )
        good, end = file.read_bytes(), rows
        for tail in TAILS:
            file.write_bytes(good)
            push(end, rows + tail)
            end = rows + tail
            seconds, cpu, resident = grown(store)
            print(
                f"  {tail:,} rows after it: first new tree after {seconds:.1f} s ({cpu:.1f} s CPU, {resident:.0f} MB)",
                flush=True,
            )
        file.unlink(missing_ok=True)
        push(end, end + 1)
        seconds, cpu, resident = grown(store)
        print(f"  without it: {seconds:.1f} s ({cpu:.1f} s CPU, {resident:.0f} MB)", flush=True)


def measure_engine(algorithm: str, rows: int, path: Path) -> None:
    X, y = train(stream := numeric(), rows + max(TAILS))
    spec = specification_of(specification(algorithm, X.shape[1], stream.classes))

    def folded(engine: TreeEngine, begin: int, end: int) -> int:
        """Number of nodes of the tree of the rows up to `end`."""
        for start in range(begin, end, GROWTH_ROWS):
            part = slice(start, min(start + GROWTH_ROWS, end))
            labels = encode_sets((1 << y[part]).astype(np.uint64))
            engine.fold_events([InstanceColumns(start + 1, X[part], labels)])
        return engine.grown_trees({}).node_count

    engine = tree_engine(spec)
    nodes = folded(engine, 0, rows)
    saved = engine.saved_state()
    assert saved is not None
    write_columns(path, saved.head, saved.columns, saved.growing)
    print(
        f"{algorithm}, {rows:,} rows, {nodes:,} nodes: {path.stat().st_size / rows:.0f} bytes a row",
        flush=True,
    )
    del engine, saved
    for what in ("tree and evidence", "evidence alone"):
        began = time.process_time()
        head, columns = read_columns(path)
        if what == "evidence alone":
            columns = {
                name: column
                for name, column in columns.items()
                if not name.startswith(TREE_COLUMNS[algorithm])
            }
        engine = tree_engine(spec)
        engine.restore_state(SavedEngine(head, columns))
        nodes = folded(engine, rows, len(X))
        print(
            f"  {what}: {time.process_time() - began:.2f} s CPU to the tree of {len(X):,} rows, {nodes:,} nodes",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--algorithms", default="active-forest,abc45")
    parser.add_argument("--engine-alone", action="store_true")
    options = parser.parse_args()
    if options.engine_alone:
        for algorithm in options.algorithms.split(","):
            with tempfile.TemporaryDirectory() as folder:
                measure_engine(algorithm, options.rows, Path(folder) / "saved")
        return
    for algorithm in options.algorithms.split(","):
        with tempfile.TemporaryDirectory() as folder:
            measure(algorithm, options.rows, Path(folder))


if __name__ == "__main__":
    main()
