"""All trials of a release, one after another: what fails stops no other, and a table at the end says what was reached.

    python tests/support/release_checks.py
    python tests/support/release_checks.py torture fuzz

Each trial is a target of the Makefile. With N in the environment (`make release-checks N=5`) all have that size.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "release-checks"
TRIALS: dict[str, int | None] = {
    "audit": None,
    "floors": None,
    "examples": None,
    "chart": None,
    "release-tests": None,
    "laws": 200,
    "torture": 200,
    "power-cuts": 2000,
    "leases": 2000,
    "fuzz": 20_000,
    "faults": None,
    "flood": None,
    "cluster-torture": 100,
}
"""Targets of the Makefile, and the size of those that have one."""


class Outcome(NamedTuple):
    """The outcome of a trial: whether it passed, how long it took, and the last line that it printed."""

    trial: str
    passed: bool
    seconds: float
    said: str


def try_out(trial: str) -> Outcome:
    """Run one trial; what it prints is shown, and kept in a file."""
    size = os.environ.get("N") or TRIALS[trial]
    command = ["make", "--no-print-directory", trial] + ([] if TRIALS[trial] is None else [f"N={size}"])
    print(f"\n=== {' '.join(command[2:])}", flush=True)
    said, began = "", time.monotonic()
    with (
        (LOGS / f"{trial}.txt").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            log.write(line)
            if line.strip() and not line.startswith("make"):  # which says in the last line that it failed
                said = line.strip().strip("= ")
    return Outcome(trial, process.returncode == 0, time.monotonic() - began, said)


def summary(outcomes: list[Outcome]) -> str:
    """Return a table of what was reached."""
    lines = [
        f"{each.trial:16} {'passed' if each.passed else 'FAILED'} {each.seconds:7.0f} s  {each.said[:160]}"
        for each in outcomes
    ]
    failed = sum(not each.passed for each in outcomes)
    total = sum(each.seconds for each in outcomes)
    lines.append(f"{len(outcomes) - failed} passed, {failed} failed in {total / 60:.0f} min; logs: {LOGS}")
    return "\n".join(lines)


def main(trials: list[str]) -> int:
    """Run some trials, or all; return the exit code."""
    unknown = [trial for trial in trials if trial not in TRIALS]
    if unknown:
        print(f"CHECKS: {unknown[0]!r} is not a trial; there are {', '.join(TRIALS)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    outcomes = [try_out(trial) for trial in trials or TRIALS]
    print(f"\n{summary(outcomes)}", flush=True)
    return int(any(not each.passed for each in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
