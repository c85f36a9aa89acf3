"""Shards that are timed in their processes, and rows that each process draws by itself."""

import os
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from _streams import nominal

from quercus.compute.processes import give_out
from quercus.compute.sharded.workers import _call_own, _ProcessShardWorkers

BLOCK = 100_000
STREAM = nominal()
KINDS, CLASSES = 10, STREAM.classes
CONTOURS = np.concatenate(
    [np.eye(CLASSES), np.random.default_rng(0).integers(1, 4, (KINDS - CLASSES, CLASSES)) / 4]
)
CONTOURS[CLASSES:] /= CONTOURS[CLASSES:].max(axis=1, keepdims=True)
SETTINGS = {"alpha": 0.5, "max_depth": 7, "min_instances": 30, "warmup_rows": 1}


def blocks(first: int, last: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw blocks of rows, each from a seed of its own; three labels in ten are one of seven uncertain ones."""
    for number in range(first, last):
        rng = np.random.default_rng([7, number])
        X, y = STREAM.draw(rng, BLOCK)
        kind = np.where(rng.random(BLOCK) < 0.3, rng.integers(CLASSES, KINDS, BLOCK), y)
        yield X, CONTOURS[kind]


def deal(rows: int, shards: int) -> list[partial]:
    """Return the rows in so many shards; a shard draws its own."""
    bounds = np.linspace(0, rows // BLOCK, shards + 1).astype(int).tolist()
    return [partial(blocks, a, b) for a, b in pairwise(bounds)]


def timed_call(shard: int, method: str, arguments: tuple) -> tuple[object, float, int]:
    """Call a method of a shard; return also the CPU seconds and the resident bytes of this process so far."""
    value = _call_own(shard, method, arguments)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return value, time.process_time(), resident


class TimedShardWorkers(_ProcessShardWorkers):
    """Processes with one shard each.

    The critical path is, of each round of calls, the CPU time of the slowest process since the round before: what it
    unpickles and pickles is in it. What this process does meanwhile is added by the caller.
    """

    def __init__(self, shards: int) -> None:
        super().__init__(shards, shards)
        self._seen = [0.0] * shards
        self.path = 0.0
        self.resident = [0] * shards

    def _begin_call(self, shard, method, arguments):
        return shard, give_out(self._pools[shard], timed_call, shard, method, arguments)

    def _collect_results(self, calls):
        found, slowest = [], 0.0
        for shard, call in calls:
            value, seconds, self.resident[shard] = call.result()
            slowest = max(slowest, seconds - self._seen[shard])
            self._seen[shard] = seconds
            found.append(value)
        self.path += slowest
        return found
