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
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{what} failed")
    seconds, cpu_s, peak_mb = (
        time.perf_counter() - began,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss * 1024 / 1e6,
    )
    print(f"{what}: {seconds:.1f} s, {cpu_s:.1f} s CPU, at most {peak_mb:.0f} MB", flush=True)


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
