"""A server under a steady load for minutes: does its memory stay where it is?

    python tests/support/soak.py 20

Rows are pushed, queries answered, rows classified and the tree watched, each at a steady rate; once a second it is
written down how much memory server and grower hold. The server is to hold the same all the time.

The grower may not: it keeps the rows that the tree was grown from, and it remembers what it has computed of cells and
of queries, up to bounds. Until these caches are full, after some thousand trees, it grows by one to two KB a row here,
where five rows make two trees; one of them, some 10 MB, is emptied whenever it is full. So a line through the samples
says little. Compared are the peaks of two stretches after the caches are full, each long enough to see that one full:
the second may be higher by `ROW_BYTES` a row, which is what rows and tree take (`bench/memory.py`), and by `NOISE_MB`.
Runs that are too short for that, on a slow machine perhaps 20 minutes, say so.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from integration.client.serving import Serving
from numpy.typing import NDArray

from quercus.client import Client, FailedPrecondition, Nominal, QuercusError, Specification
from support.processes import children, resident_bytes

MODEL: Final = "m"
VALUES: Final = ("a", "b", "c")
CLASSES: Final = ("o", "s", "x")
ATTRIBUTES: Final = 4
BATCH_ROWS: Final = 5
RATES: Final = {"push": 4.0, "classify": 20.0, "label": 4.0}
"""Calls a second."""

WARM_UP: Final = 0.4
"""Share of the time after which memory counts."""

FULL_TREES: Final = 3300
"""After so many trees the caches are full."""

STRETCH_TREES: Final = 2600
"""Within so many trees the one that is emptied is full once."""

SAMPLE_S: Final = 1.0
FLAT_MB_H: Final = 30.0
"""Growth of the server below this, by a line through the samples, is none."""

ROW_BYTES: Final = 100.0
NOISE_MB: Final = 4.0
Samples = NDArray[np.float64]
Sample = tuple[float, int, int, int, int]  # seconds, bytes of the server, bytes of the grower, rows, trees


@dataclass(frozen=True)
class Rise:
    """How much higher memory peaks than before, how many rows later, and whether the run was long enough to tell."""

    mb: float
    rows: int
    told: bool

    @property
    def allowed_mb(self) -> float:
        """How much higher it may peak."""
        return self.rows * ROW_BYTES / 1e6 + NOISE_MB


@dataclass
class Soak:
    """A server, its load, and what its processes hold.

    Parameters
    ----------
    folder : of the store.
    seed : of rows.
    """

    folder: Path
    seed: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    samples: list[Sample] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Load the server for so long."""
        serving = Serving(self.folder, 0, "--log-level", "error")
        self._stop = threading.Event()
        self._chance = random.Random(self.seed)  # noqa: S311
        works: dict[str, Callable[[Client], None]] = {
            "push": self._push, "classify": self._classify, "label": self._label
        }  # fmt: skip
        try:
            with Client(serving.address) as client:
                attributes = [Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES)]
                client.create_model(
                    MODEL, Specification(attributes, CLASSES, alpha=0.9, budget=1_000_000, min_instances=20)
                )
                self._push(client)
                client.wait_grown(MODEL, timeout_s=300)
            threads = [
                threading.Thread(target=self._at_rate, args=(serving.address, name, work))
                for name, work in works.items()
            ]
            watch = threading.Thread(target=self._watch, args=(serving.address,))
            for thread in (*threads, watch):
                thread.start()
            self._sample(serving.process.pid, seconds)
            self._stop.set()
            for thread in (*threads, watch):
                thread.join()
        finally:
            self._stop.set()
            assert serving.stop() == 0
        assert self.wrong == []

    def _at_rate(self, address: str, name: str, work: Callable[[Client], None]) -> None:
        due = time.monotonic()
        with Client(address) as client:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                due = max(due + 1 / RATES[name], time.monotonic() - 1.0)
                try:
                    work(client)
                except QuercusError as error:
                    self.wrong.append(f"{name}: {type(error).__name__}: {error}")
                    return
                self.calls[name] += 1

    def _row(self) -> list[str]:
        return [self._chance.choice(VALUES) for _ in range(ATTRIBUTES)]

    def _push(self, client: Client) -> None:
        rows = [self._row() for _ in range(BATCH_ROWS)]
        labels: list[Any] = [
            self._chance.choice((_class_of(row), set(CLASSES[:2]), None, None)) for row in rows
        ]
        client.push(MODEL, rows, labels)
        self.rows += len(rows)

    def _classify(self, client: Client) -> None:
        client.classify(MODEL, [self._row() for _ in range(BATCH_ROWS)])

    def _label(self, client: Client) -> None:
        for query in client.lease(MODEL, "ann").queries:
            try:
                client.answer(query, _class_of([str(query.values[f"x{k}"]) for k in range(ATTRIBUTES)]))
                self.calls["answer"] += 1
            except FailedPrecondition:
                return  # growth wants it no more

    def _watch(self, address: str) -> None:
        with Client(address) as client:
            for _ in client.watch(MODEL):
                self.calls["tree"] += 1
                if self._stop.is_set():
                    return

    def _sample(self, server: int, seconds: float) -> None:
        started = time.monotonic()
        while (now := time.monotonic() - started) < seconds and not self.wrong:
            growers = sum(resident_bytes(pid) for pid in children(server))
            self.samples.append((now, resident_bytes(server), growers, self.rows, self.calls["tree"]))
            time.sleep(SAMPLE_S)

    @property
    def late(self) -> Samples:
        """The samples after the warm-up: seconds, bytes of the server, bytes of the grower, rows, trees."""
        return np.array(self.samples[int(WARM_UP * len(self.samples)) :], dtype=float)

    def server_slope(self) -> float:
        """Return how fast the memory of the server grows after the warm-up, MB an hour."""
        late = self.late
        return float(np.polyfit(late[:, 0], late[:, 1], 1)[0]) * 3600 / 1e6

    def grower_rise(self) -> Rise:
        """Return how much higher the grower's memory peaks in the second half after the warm-up than in the first."""
        first, second = np.array_split(self.late, 2)
        ends = np.array([first[0], first[-1], second[-1]])
        rows, trees = np.diff(ends[:, 3])[1], np.diff(ends[:, 4])
        told = ends[0, 4] >= FULL_TREES and trees.min() >= STRETCH_TREES
        return Rise(float(second[:, 2].max() - first[:, 2].max()) / 1e6, int(rows), bool(told))


def _class_of(row: list[str]) -> str:
    codes = [VALUES.index(value) for value in row]
    return CLASSES[(codes[0] + 2 * codes[1] * codes[2]) % 3]


def main() -> None:
    """Soak for as many minutes as the first argument says, and say whether memory is flat."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        soak.run(60 * minutes)
    print(f"{'minute':>8} {'server MB':>10} {'grower MB':>10} {'rows':>9}")
    step = max(1, len(soak.samples) // 20)
    for seconds, server, grower, rows, _ in soak.samples[::step]:
        print(f"{seconds / 60:8.1f} {server / 1e6:10.1f} {grower / 1e6:10.1f} {rows:9,}")
    print(", ".join(f"{number:,} x {name}" for name, number in soak.calls.most_common()))
    server, rise = soak.server_slope(), soak.grower_rise()
    print(f"after the warm-up: server {server:+.1f} MB/h (at most {FLAT_MB_H:+.0f})")
    print(f"peak of the grower {rise.mb:+.1f} MB, {rise.rows:,} rows later (at most {rise.allowed_mb:+.1f})")
    if not rise.told:
        sys.exit(
            f"too short to tell: caches need {FULL_TREES:,} trees to be full, then twice {STRETCH_TREES:,}"
        )
    if server > FLAT_MB_H or rise.mb > rise.allowed_mb:
        sys.exit("memory grows")
    print("memory is flat")


if __name__ == "__main__":
    main()
