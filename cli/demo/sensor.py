"""A simulated sensor: pushes the rows of a file as if they were measured now, one after another."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from quercus.cli.demo.child import end_with_parent
from quercus.cli.demo.tables import read_table, row_numbers
from quercus.client.client import Client
from quercus.client.unseen import PushReport

BATCH_ROWS = 8


def paced_rows(rows: list[dict[str, float]], rows_per_s: float) -> Iterator[dict[str, float]]:
    """Yield rows at a pace."""
    for row in rows:
        yield row
        time.sleep(1 / rows_per_s)


def push_rows(server: str, model: str, file: Path, rows_per_s: float) -> PushReport:
    """Push every row of ``file`` without a label; its column ``id`` names the instances."""
    table = read_table(file)
    ids = [row.pop("id") for row in table]
    rows = [row_numbers(row) for row in table]

    def show_progress(report: PushReport) -> None:
        print(f"{report.rows} of {len(rows)} rows acknowledged", flush=True)

    with Client(server) as client:
        return client.push(
            model, paced_rows(rows, rows_per_s), ids=ids, batch_rows=BATCH_ROWS, on_progress=show_progress
        )


def main() -> None:
    """Push, then print the report as a line of JSON."""
    parser = argparse.ArgumentParser(prog="quercus-sensor")
    parser.add_argument("server")
    parser.add_argument("model")
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows-per-s", type=float, required=True)
    given = parser.parse_args()
    end_with_parent()
    report = push_rows(given.server, given.model, given.file, given.rows_per_s)
    print(json.dumps(asdict(report)), flush=True)


if __name__ == "__main__":
    main()
