"""`quercus archive` and `quercus rebuild`, each run as a process of its own: time, CPU, memory and bytes.

Run: python bench/archive.py [--quick] [--rows 50000]

The rows (10 numbers, 3 classes) lie in a store on the disk.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import highest_mb
from _models import encode_targets, stored_specification
from _report import Report, Row, parser, reporting
from _streams import drawn_set

from quercus.experiments.datasets import DataSet
from quercus.storage import Store, file_url

CHUNK = 10_000


def push(store: Store, data: DataSet) -> None:
    for begin in range(0, len(data), CHUNK):
        values, labels = (
            data.values[begin : begin + CHUNK],
            encode_targets(data.targets[begin : begin + CHUNK]),
        )
        store.append_instances("m", [f"i{n}" for n in range(begin, begin + len(values))], values, labels)


def run(*arguments: object) -> str:
    """Run a command; return what it took."""
    began = time.perf_counter()
    command = [Path(sys.executable).with_name("quercus"), *map(str, arguments), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak_mb = 0.0  # ru_maxrss would begin with the memory of this process
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        peak_mb = max(peak_mb, highest_mb(process.pid))
        time.sleep(0.05)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"quercus {arguments[0]} failed")
    seconds, cpu = time.perf_counter() - began, used.ru_utime + used.ru_stime
    return f"{seconds:.1f} s ({cpu:.1f} s CPU), at most {peak_mb:.0f} MB"


def measure(report: Report, rows: int) -> None:
    data = drawn_set(rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, archive, other = folder / "store.db", folder / "archive", folder / "other.db"
        with Store.open(file_url(path)) as store:
            store.create_model("m", stored_specification(data.attributes, data.classes), budget=1_000)
            push(store, data)
            archived = run("archive", "m", "--out", archive, "--store", path)
        size = sum(file.stat().st_size for file in archive.rglob("*.parquet"))
        rebuilt = run("rebuild", archive, "--store", other, "--create")
        bytes_a_row = f"{size / rows:.0f} bytes a row, the store {path.stat().st_size / rows:.0f}"
    report.add(
        Row(
            f"`quercus archive` and `quercus rebuild` of {rows:,} rows × 10 (wall time)",
            f"{archived}, {bytes_a_row}; rebuild {rebuilt}",
        )
    )


def main() -> None:
    read = parser()
    read.add_argument("--rows", type=int)
    given = read.parse_args()
    with reporting("Archive and rebuild", ("pyarrow",), quick=given.quick) as report:
        measure(report, given.rows or (5_000 if given.quick else 50_000))


if __name__ == "__main__":
    main()
