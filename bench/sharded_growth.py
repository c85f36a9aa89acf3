"""One tree of ten nominal attributes and ten contours, of two shards in two processes, and of one process.

The critical path of the shards is the CPU time of the process that passes counts on, and in each round of calls that of
the slower worker, pickling included. Both begin with rows that are encoded, and with all modules loaded.
The trees are equal to the bit, or there is no figure. ``--rows`` sets the number of rows.
"""

import argparse
import time
from dataclasses import fields

import numpy as np
from _measure import Clock, times
from _report import Report, Row, reporting
from _sharded import BLOCK, SETTINGS, STREAM, TimedShardWorkers, blocks, deal

from quercus.compute.sharded.growth import _Growth
from quercus.trees.growth.stream import GrowthState, Observed, grow

TARGET = 0.65
SHARDS = 2


class TimedGrowth(_Growth):
    """Measures from the rows being encoded to the last node."""

    seconds = 0.0
    path = 0.0
    _workers: TimedShardWorkers

    def _grow(self, tree, counts):
        workers = self._workers
        started, workers.path = time.process_time(), 0.0
        super()._grow_levels(tree, counts)
        self.seconds = time.process_time() - started
        self.path = self.seconds + workers.path


def shards(specification, rows: int):
    """Return the tree, the seconds of the critical path, those of this process in it, and workers' bytes."""
    workers = TimedShardWorkers(SHARDS)
    try:
        for count in (BLOCK * SHARDS, rows):  # the first loads what is needed
            empty = max(workers.resident)
            workers.call_all("", [(specification, each) for each in deal(count, SHARDS)])
            growth = TimedGrowth(specification, workers)
            tree = growth.tree()
        return tree, growth.path, growth.seconds, max(workers.resident) - empty
    finally:
        workers.close()


def one_process(specification, rows: int):
    """Return the tree, and the CPU seconds from encoded rows to it."""
    state = GrowthState.initial(specification)
    for X, contours in blocks(0, rows // BLOCK):
        state = grow(state, [Observed(X, contours)])
    with Clock() as clock:
        tree = state.unpruned_tree
    return tree, clock.seconds


def measure(report: Report, rows: int, repeats: int) -> None:
    specification = STREAM.specification(**SETTINGS)
    taken = []
    for _ in range(repeats):
        one, alone = one_process(specification, rows)
        tree, path, passing, resident = shards(specification, rows)
        for field in fields(one):
            left, right = (np.asarray(getattr(each, field.name)) for each in (one, tree))
            assert left.tobytes() == right.tobytes(), field.name
        taken.append((alone, path, passing, resident))
    alone, path, passing, resident = np.median(taken, axis=0)
    report.add(
        Row(
            f"one tree of {rows:,} rows in {SHARDS} shards, {tree.attribute.size:,} nodes: critical path",
            f"{path:.2f} s CPU, {passing:.2f} s of it passing counts on",
            f"one process {alone:.2f} s CPU",
            times(alone / path),
            f"≤ {TARGET} × the time of one process: {path / alone:.2f} ×",
            bool(path <= TARGET * alone),
        )
    )
    report.note(f"a worker of {rows // SHARDS:,} rows grew by {resident / (rows / SHARDS):.0f} bytes a row")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--rows", type=int, default=1_000_000, help=f"a multiple of {BLOCK * SHARDS:,}")
    given = parser.parse_args()
    rows = 200_000 if given.quick else given.rows
    with reporting("Growth on shards", (), quick=given.quick) as report:
        one_process(STREAM.specification(**SETTINGS), BLOCK)  # loads what is needed
        measure(report, rows, 1 if given.quick else 3)


if __name__ == "__main__":
    main()
