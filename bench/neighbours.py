"""Small models beside a large one: how often their trees are published, how far they lag, what the grower holds.

Two models of 13 numbers and 3 classes get 4 labelled rows ten times a second each, at default settings, first alone
and then beside a model of many numbers, classes and rows. A server runs as anybody would start it; versions and lag are
what `GetModel` says. Memory is that of the grower and of the processes that it has started.

``--rows 20000`` makes the large model smaller, ``--seconds`` watches it for another time, ``--limit`` is passed on to
the server.
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from _measure import family, resident_mb
from _report import Report, Row, parser, reporting
from service import process

from quercus.client import Client, Numeric, Specification
from quercus.client.errors import QuercusError

SMALL, ATTRIBUTES, CLASSES = ("small-1", "small-2"), 13, 3
PUSH_ROWS, PUSH_S = 4, 0.1
LARGE_NUMBERS, LARGE_CLASSES, LARGE_ROWS = 200, 64, 102_000
BATCH = 2_000
ALONE_S, BESIDE_S = 20.0, 60.0
RATE_TARGET = 0.75
QUERCUS = Path(sys.executable).with_name("quercus")


def samples(rng, centres, rows: int):
    klass = rng.integers(0, len(centres), rows)
    return centres[klass] + 2.0 * rng.normal(size=(rows, centres.shape[1])), [f"c{c}" for c in klass]


def specification(attributes: int, classes: int) -> Specification:
    return Specification([Numeric(f"x{i}") for i in range(attributes)], [f"c{i}" for i in range(classes)])


def push_small(address: str, model: str, stop: threading.Event) -> None:
    rng = np.random.default_rng(len(model))
    centres = rng.normal(size=(CLASSES, ATTRIBUTES))
    with Client(address) as client:
        at = time.monotonic()
        while not stop.is_set():
            values, labels = samples(rng, centres, PUSH_ROWS)
            client.push(model, values, labels)
            at = max(at + PUSH_S, time.monotonic())
            stop.wait(at - time.monotonic())


def push_large(address: str, rows: int, stop: threading.Event) -> None:
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(LARGE_CLASSES, LARGE_NUMBERS))
    with Client(address) as client:
        client.create_model("large", specification(LARGE_NUMBERS, LARGE_CLASSES))
        for first in range(0, rows, BATCH):
            if stop.is_set():
                return
            client.push("large", *samples(rng, centres, min(BATCH, rows - first)))


def watch(client: Client, grower: int, seconds: float) -> dict[str, object]:
    """Return versions a second of the small models, their lags, and the memory in MB by second."""
    before = {name: client.get_model(name).tree_version for name in SMALL}
    started, lags, memory, published = time.monotonic(), [], [], dict.fromkeys(SMALL, time.monotonic())
    last, gaps = dict(before), []
    while (passed := time.monotonic() - started) < seconds:
        for name in SMALL:
            model = client.get_model(name)
            lags.append(model.lag)
            if model.tree_version != last[name]:
                gaps.append(time.monotonic() - published[name])
                published[name], last[name] = time.monotonic(), model.tree_version
        if passed >= len(memory):
            each = [resident_mb(pid) for pid in family(grower)]
            memory.append((each[0], sum(each)))
        time.sleep(0.05)
    passed = time.monotonic() - started
    gaps += [time.monotonic() - published[name] for name in SMALL]
    rate = float(np.mean([(last[name] - before[name]) / passed for name in SMALL]))
    return {"rate": rate, "lag": np.percentile(lags, [50, 100]).tolist(), "gap": max(gaps), "memory": memory}


def figures(found) -> str:
    median, most = found["lag"]
    return (
        f"{found['rate']:.2f} versions/s each, longest pause {found['gap']:.1f} s, lag {median:.0f} rows "
        f"(most {most:.0f})"
    )


def measure(report: Report, rows: int, seconds: float, limits: list[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        process(QUERCUS, "serve", "--store", Path(folder) / "store.db", "--port", "0", *limits) as server,
    ):
        address, grower = server.address, family(server.pid)[1]
        stop = threading.Event()
        with Client(address) as client:
            for name in SMALL:
                client.create_model(name, specification(ATTRIBUTES, CLASSES))
            threads = [threading.Thread(target=push_small, args=(address, name, stop)) for name in SMALL]
            try:
                for thread in threads:
                    thread.start()
                time.sleep(5.0)
                alone = watch(client, grower, ALONE_S)
                threads.append(threading.Thread(target=push_large, args=(address, rows, stop)))
                threads[-1].start()
                beside = watch(client, grower, seconds)
                large = client.get_model("large")
            except QuercusError as error:
                report.note(f"it ended early: {error}")
                raise
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
    share = beside["rate"] / alone["rate"]
    report.add(
        Row(
            f"versions of two models of {ATTRIBUTES} numbers and {CLASSES} classes, {PUSH_ROWS / PUSH_S:.0f} rows/s "
            f"each, by one of {LARGE_NUMBERS} numbers, {LARGE_CLASSES} classes, {rows:,} rows, over {seconds:.0f} s",
            figures(beside),
            f"alone {figures(alone)}",
            f"{share:.2f} of the versions that they have alone",
            f"≥ {RATE_TARGET:g}",
            bool(share >= RATE_TARGET),
        )
    )
    every = max(1, len(beside["memory"]) // 6)
    sizes = ", ".join(
        f"{own:.0f} ({whole:.0f})" for own, whole in [*beside["memory"][::every], beside["memory"][-1]]
    )
    report.note(f"The grower's MB (with the processes that it started), every {every} s: {sizes}.")
    report.note(
        f"The large model then: version {large.tree_version} as of {large.sequence_grown:,} of "
        f"{large.sequence_committed:,} events{f'; {large.growth_stopped}' if large.growth_stopped else ''}."
    )


def main() -> None:
    read = parser()
    read.add_argument("--rows", type=int, help="rows of the large model")
    read.add_argument("--seconds", type=float, help="how long the models are watched beside it")
    read.add_argument("--limit", action="append", default=[], help="NAME=VALUE, passed on to the server")
    given = read.parse_args()
    rows = given.rows or (10_000 if given.quick else LARGE_ROWS)
    seconds = given.seconds or (40.0 if given.quick else BESIDE_S)
    limits = [word for limit in given.limit for word in ("--limit", limit)]
    with reporting("Small models beside a large one", ("grpcio",), quick=given.quick) as report:
        measure(report, rows, seconds, limits)


if __name__ == "__main__":
    main()
