"""A server under a steady load for minutes: does its memory stay where it is?

    python tests/support/soak.py 20

Rows are pushed, queries answered, rows classified and the trees watched, each at a steady rate, in turn of a model of
the default, the forest that asks, and of the published tree; once a second it is written down how much memory server
and grower hold. The server is to hold the same all the time.

The grower may hold what the rows take that trees were grown from, `ROW_BYTES` each (`bench/grower.py`). Beside it there
are tables of fixed size: what it has computed of cells, distances between up to a thousand rows, pages of the database.
They are full after some hundred trees. So the first half of the time is a warm-up; what is judged is the trend of the
second half, beside a limit in MB an hour.

The trend is Theil's and Sen's: the median of the slopes between all pairs of points, whatever a few of them do, with
its 95 % confidence interval (Sen 1968). The points are medians of `BLOCK_S`, since memory of one second is much like
that of the next, and the interval is one of points that are independent. Growth is proven where the whole interval is
above the limit, flatness where it is below; otherwise the run was too short to tell, and says so.
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
from itertools import cycle
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from integration.client.serving import Serving
from numpy.typing import NDArray
from scipy.stats import theilslopes

from quercus.client import Client, FailedPrecondition, Nominal, QuercusError, Specification
from support.processes import children, cpu_s, resident_bytes
from support.published import published_model

ATTRIBUTES: Final = 4
VALUES: Final = ("a", "b", "c")
CLASSES: Final = ("o", "s", "x")
BATCH_ROWS: Final = 5
LEARNED: Final[tuple[Any, ...]] = ([Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES)], CLASSES)
SETTINGS: Final[dict[str, Any]] = {"alpha": 0.9, "budget": 1_000_000, "min_instances": 20}
MODELS: Final = {
    "forest": Specification(*LEARNED, **SETTINGS),
    "tree": published_model(*LEARNED, **SETTINGS),
}
RATES: Final = {"push": 4.0, "classify": 20.0, "label": 4.0}
"""Calls a second."""

WARM_UP: Final = 0.5
"""Share of the time after which memory counts."""

SAMPLE_S: Final = 1.0
BLOCK_S: Final = 30.0
LEAST_BLOCKS: Final = 3
LIMIT_MB_H: Final = 10.0
"""Growth below this is called none: a quarter of a gigabyte a day, and what 20 minutes can tell from noise."""

ROW_BYTES: Final = (437.0 + 100.0) / 2  # of the forest with the tree beside it, and of the tree
CONFIDENCE: Final = 0.95
Samples = NDArray[np.float64]
Sample = tuple[float, int, int, int, int]  # seconds, bytes of the server, bytes of the grower, rows, trees


@dataclass(frozen=True)
class Trend:
    """The growth of memory in MB per hour: the estimate, its confidence interval, and the limit."""

    slope: float
    low: float
    high: float
    limit: float

    @property
    def verdict(self) -> str:
        """The conclusion from the interval and the limit."""
        if self.high <= self.limit:
            return "flat"
        return "grows" if self.low > self.limit else "too short to tell"

    def __str__(self) -> str:
        return (
            f"{self.slope:+.1f} MB/h, 95 % between {self.low:+.1f} and {self.high:+.1f}, "
            f"at most {self.limit:+.1f}: {self.verdict}"
        )


def trend(seconds: Samples, memory: Samples, limit: float) -> Trend:
    """Return the trend of `memory` (n,), in bytes, over `seconds` (n,); see the module."""
    block = (seconds // BLOCK_S).astype(int)
    blocks = [block == number for number in np.unique(block)]
    if len(blocks) < LEAST_BLOCKS:
        return Trend(np.nan, -np.inf, np.inf, limit)
    hours = np.array([np.median(seconds[each]) for each in blocks]) / 3600
    megabytes = np.array([np.median(memory[each]) for each in blocks]) / 1e6
    slope, _, low, high = theilslopes(megabytes, hours, CONFIDENCE)
    return Trend(float(slope), float(low), float(high), limit)


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
    grower_cpu_s: float = 0.0

    def run(self, seconds: float) -> None:
        """Load the server for so long."""
        serving = Serving(self.folder, 0, "--log-level", "error")
        self._stop = threading.Event()
        self._chance = random.Random(self.seed)  # noqa: S311
        works: dict[str, Callable[[Client, str], None]] = {
            "push": self._push, "classify": self._classify, "label": self._label
        }  # fmt: skip
        try:
            with Client(serving.address) as client:
                for model, specification in MODELS.items():
                    client.create_model(model, specification)
                    self._push(client, model)
                    client.wait_grown(model, timeout_s=300)
            threads = [
                threading.Thread(target=self._at_rate, args=(serving.address, name, work))
                for name, work in works.items()
            ]
            threads += [
                threading.Thread(target=self._watch, args=(serving.address, model)) for model in MODELS
            ]
            for thread in threads:
                thread.start()
            self._sample(serving.process.pid, seconds)
            self._stop.set()
            for thread in threads:
                thread.join()
        finally:
            self._stop.set()
            assert serving.stop() == 0
        assert self.wrong == []

    def _at_rate(self, address: str, name: str, work: Callable[[Client, str], None]) -> None:
        due, turns = time.monotonic(), cycle(MODELS)
        with Client(address) as client:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                due = max(due + 1 / RATES[name], time.monotonic() - 1.0)
                try:
                    work(client, next(turns))
                except QuercusError as error:
                    self.wrong.append(f"{name}: {type(error).__name__}: {error}")
                    return
                self.calls[name] += 1

    def _row(self) -> list[str]:
        return [self._chance.choice(VALUES) for _ in range(ATTRIBUTES)]

    def _push(self, client: Client, model: str) -> None:
        rows = [self._row() for _ in range(BATCH_ROWS)]
        labels: list[Any] = [
            self._chance.choice((_class_of(row), set(CLASSES[:2]), None, None)) for row in rows
        ]
        client.push(model, rows, labels)
        self.rows += len(rows)

    def _classify(self, client: Client, model: str) -> None:
        client.classify(model, [self._row() for _ in range(BATCH_ROWS)])

    def _label(self, client: Client, model: str) -> None:
        for query in client.lease(model, "ann").queries:
            try:
                client.answer(query, _class_of([str(query.values[f"x{k}"]) for k in range(ATTRIBUTES)]))
                self.calls["answer"] += 1
            except FailedPrecondition:
                return  # growth wants it no more

    def _watch(self, address: str, model: str) -> None:
        with Client(address) as client:
            for _ in client.watch(model):
                self.calls["tree"] += 1
                if self._stop.is_set():
                    return

    def _sample(self, server: int, seconds: float) -> None:
        started = time.monotonic()
        while (now := time.monotonic() - started) < seconds and not self.wrong:
            growers = sum(resident_bytes(pid) for pid in children(server))
            self.grower_cpu_s = sum(cpu_s(pid) for pid in children(server))
            self.samples.append((now, resident_bytes(server), growers, self.rows, self.calls["tree"]))
            time.sleep(SAMPLE_S)

    @property
    def late(self) -> Samples:
        """The samples after the warm-up: seconds, bytes of the server, bytes of the grower, rows, trees."""
        return np.array(self.samples[int(WARM_UP * len(self.samples)) :], dtype=float)

    def server_trend(self) -> Trend:
        """Return how fast the memory of the server grows after the warm-up."""
        return trend(self.late[:, 0], self.late[:, 1], LIMIT_MB_H)

    def grower_trend(self) -> Trend:
        """Return how fast the memory of the grower grows after the warm-up; it may by what its rows take."""
        seconds, rows = np.ptp(self.late[:, 0]), np.ptp(self.late[:, 3])
        return trend(
            self.late[:, 0], self.late[:, 2], LIMIT_MB_H + ROW_BYTES / 1e6 * float(rows / seconds) * 3600
        )


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
    trends = {"server": soak.server_trend(), "grower": soak.grower_trend()}
    for name, found in trends.items():
        print(f"{name} after the warm-up: {found}")
    print(f"CPU time of the grower: {soak.grower_cpu_s:.0f} s in {60 * minutes:.0f}")
    sys.exit(any(found.verdict != "flat" for found in trends.values()))


if __name__ == "__main__":
    main()
