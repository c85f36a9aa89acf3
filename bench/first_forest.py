"""The first forest: seconds from `quercus serve` to a forest of 200 rows, of the default model."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import Row, options, reporting
from service import process

from quercus.client import Client, Nominal, Specification

ROWS, GIVE_UP_S, TARGET_S = 200, 60.0, 3.0
QUERCUS = Path(sys.executable).with_name("quercus")


def first_forest_s(folder: str) -> tuple[float, float]:
    """Return seconds until the server listens, and until the forest has learned all rows."""
    values = [[f"{i % 3}", f"{i // 3 % 3}"] for i in range(ROWS)]
    started = time.monotonic()
    with process(QUERCUS, "serve", "--store", Path(folder) / "new.db", "--port", "0") as server:
        listens = time.monotonic() - started
        with Client(server.address) as client:
            client.create_model("m", Specification([Nominal("a", "012"), Nominal("b", "012")], ["x", "y"]))
            client.push("m", values, ["x" if a == b else "y" for a, b in values])
            while client.get_model("m").sequence_grown < ROWS:
                if time.monotonic() > started + GIVE_UP_S:
                    raise SystemExit(f"no forest after {GIVE_UP_S:g} s")
                time.sleep(0.01)
            return listens, time.monotonic() - started


def main() -> None:
    quick = options().quick
    with reporting("The first forest", ("grpcio",), quick=quick) as report:
        taken = []
        for _ in range(3 if quick else 9):
            with tempfile.TemporaryDirectory() as folder:
                taken.append(first_forest_s(folder))
        listens, forest = np.median(taken, axis=0)
        report.add(
            Row(
                f"`quercus serve` on a new store, to a forest of {ROWS} rows (wall time)",
                f"{forest:.2f} s",
                f"listening after {listens:.2f} s",
                "",
                f"≤ {TARGET_S:g} s",
                bool(forest <= TARGET_S),
            )
        )


if __name__ == "__main__":
    main()
