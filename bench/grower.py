"""The needs of a grower: memory, and the time from its start to new trees, with saved growth and without.

Run: python bench/grower.py [--quick] [--rows 1000000]

Rows lie in a store on the disk, all labelled; models have default settings, the forest or the tree. A grower reads them
from nothing and is killed (SIGKILL) once its growth is saved, or after 20 seconds where reading again costs so little
that nothing is saved; then 50 rows more are pushed and another one starts.
Real rows are those of covertype; so many as `--rows` says are drawn (10 numbers, 3 classes). Memory is that of the
grower and of the process that it starts for a large model, each at its highest, libraries included, after they have
read all rows from nothing. CPU time is theirs too.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from _data import real_sets
from _measure import family, family_cpu_s, highest_mb, times
from _models import FOREST, TREE, encode_targets, stored_specification
from _report import Report, Row, parser, reporting
from _streams import drawn_set

from quercus.experiments.datasets import DataSet
from quercus.server.growth import saved_growth
from quercus.storage import Store

CHUNK, MORE, WAIT_S, SAVED_S, QUIET_S = 10_000, 50, 300.0, 20.0, 3.0
TARGET_ROWS = 1_000_000
TARGETS_MB = {FOREST: 1_000, TREE: 300}


@dataclass(frozen=True)
class Started:
    """Seconds from the start of a grower until its trees have all rows, CPU seconds, and memory; with its processes."""

    seconds: float
    cpu_s: float
    memory_mb: float


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"nothing came in {WAIT_S:.0f} s")
        time.sleep(0.01)


def start(store: Store) -> subprocess.Popen:
    command = [sys.executable, "-m", "quercus.server.growth.grower", store.url, "--log-level", "warning"]
    # where bytecode may not be kept, every start would compile all modules again, for two seconds
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def grown(store: Store, then: Callable[[], None] = lambda: None) -> Started:
    """Start a grower, wait until its trees have all rows, do something more, and kill it."""
    began = time.perf_counter()
    grower = start(store)
    try:
        wait_until(lambda: store.get_model("m").sequence_grown == store.get_model("m").sequence_committed)
        seconds, spent = time.perf_counter() - began, family_cpu_s(grower.pid)
        found = Started(seconds, spent, sum(map(highest_mb, family(grower.pid))))
        then()
        return found
    finally:
        grower.kill()
        grower.wait()


def with_and_without(data: DataSet, learner: str, folder: Path) -> tuple[Started, Started, float]:
    """Return a start without saved growth, one with it, and the bytes of a row in the saved growth."""
    rows = len(data) - MORE
    with Store.open(f"sqlite:///{folder / 'store.db'}") as store:

        def push(begin: int, end: int) -> None:
            labels = encode_targets(data.targets[begin:end])
            store.append_instances("m", [f"i{n}" for n in range(begin, end)], data.values[begin:end], labels)

        store.create_model("m", stored_specification(data.attributes, data.classes, learner), budget=1_000)
        file = store.beside(saved_growth.SUFFIX) / f"{store.get_model('m').uid}{saved_growth.ENDING}"
        for begin in range(0, rows, CHUNK):
            push(begin, min(begin + CHUNK, rows))

        def is_saved() -> bool:
            """The file holds all rows but those that are read in a quarter of a second: no other has followed."""
            whole = file.exists() and not list(file.parent.glob("*.part"))
            return whole and time.time() - file.stat().st_mtime > QUIET_S

        def wait_saved() -> None:
            given_up = time.monotonic() + SAVED_S
            wait_until(lambda: is_saved() or (time.monotonic() > given_up and not file.parent.exists()))

        without = grown(store, then=wait_saved)
        size = (
            512 * file.stat().st_blocks / rows if file.exists() else 0.0
        )  # the room behind columns takes none
        push(rows, rows + MORE)
        return without, grown(store), size


def said(started: Started) -> str:
    return f"{started.seconds:.1f} s, {started.cpu_s:.1f} s"


def measure(report: Report, data: DataSet) -> None:
    found = {}
    for learner in (FOREST, TREE):
        with tempfile.TemporaryDirectory() as folder:
            found[learner] = with_and_without(data, learner, Path(folder))
    (without, with_it, size), (tree_without, tree_with, tree_size) = found[FOREST], found[TREE]
    rows = f"{data.name}, {len(data) - MORE:,} rows × {len(data.attributes)}"
    memory = {name: each[0].memory_mb for name, each in found.items()}
    if len(data) >= TARGET_ROWS:
        report.add(
            Row(
                f"memory of a grower: {rows}",
                f"{memory[FOREST]:.0f} MB; tree {memory[TREE]:.0f} MB",
                target=f"< {TARGETS_MB[FOREST]:,} MB; tree < {TARGETS_MB[TREE]} MB",
                reached=all(memory[name] < TARGETS_MB[name] for name in memory),
            )
        )
    report.add(
        Row(
            f"start of a grower to new trees, {MORE} rows after its growth was saved: {rows}: wall time, CPU",
            f"{said(with_it)}; tree {said(tree_with)}",
            f"without saved growth {said(without)}; tree {said(tree_without)}",
            f"{times(without.cpu_s / with_it.cpu_s)}; tree {times(tree_without.cpu_s / tree_with.cpu_s)}",
        )
    )
    report.note(
        f"{rows}: saved growth {size:.0f} bytes a row, of the tree {tree_size:.0f}; memory at its highest "
        f"{memory[FOREST]:.0f} MB, of the tree {memory[TREE]:.0f}."
    )


def main() -> None:
    read = parser()
    read.add_argument("--rows", type=int, help="how many rows are drawn")
    given = read.parse_args()
    rows = given.rows or (100_000 if given.quick else 1_000_000)
    with reporting("A grower", ("sqlalchemy",), quick=given.quick) as report:
        if not given.quick:
            for data in real_sets(report, ["covertype_100k"]):
                measure(report, data)
        measure(report, drawn_set(rows + MORE))


if __name__ == "__main__":
    main()
