"""Time, CPU, memory and bytes of `quercus archive` and `quercus rebuild`, each run as a process of its own.

Run: python bench/archive.py [--rows 1000000]

The rows are those of stream B (10 numbers, 3 classes), in a store on the disk.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _streams import numeric, train
from restart import specification

from quercus.belief.codec import encode_sets
from quercus.storage import Store, file_url

CHUNK = 10_000
MORE = 1_000
"""Rows that are pushed after the first run."""


def push(store: Store, X: np.ndarray, y: np.ndarray, first: int, last: int) -> None:
    for begin in range(first, last, CHUNK):
        end = min(begin + CHUNK, last)
        labels = encode_sets((1 << y[begin:end]).astype(np.uint64))
        store.append_instances("m", [f"i{n}" for n in range(begin, end)], X[begin:end], labels)


def run(what: str, *arguments: object) -> None:
    """Run a command and print what it took."""
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
        sys.exit(f"{what} failed")
    seconds, cpu_s = time.perf_counter() - began, used.ru_utime + used.ru_stime
    print(f"{what}: {seconds:.1f} s, {cpu_s:.1f} s CPU, at most {peak_mb:.0f} MB", flush=True)


def highest_mb(pid: int) -> float:
    """Return the highest resident size of a process so far; 0 when it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    X, y = train(stream := numeric(), rows + MORE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, archive, other = folder / "store.db", folder / "archive", folder / "other.db"
        with Store.open(file_url(path)) as store:
            store.create_model("m", specification("active-forest", X.shape[1], stream.classes), budget=1_000)
            push(store, X, y, 0, rows)
            run(f"archive of {rows:,} rows", "archive", "m", "--out", archive, "--store", path)
            push(store, X, y, rows, rows + MORE)
        print(f"  {size(archive) / rows:.0f} bytes a row, the store {path.stat().st_size / rows:.0f}")
        run(f"{MORE:,} more", "archive", "m", "--out", archive, "--store", path)
        run(f"rebuild of {rows + MORE:,} rows", "rebuild", archive, "--store", other, "--create")


if __name__ == "__main__":
    main()
