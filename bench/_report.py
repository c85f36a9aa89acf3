"""The results of a measurement: rows of one page.

A script prints its own table and keeps the rows in ``bench/results/<script>.json``, from which ``python bench`` writes
RESULTS.md; so one script can be run again without the others. Results of ``--quick`` go to ``bench/results/quick/``:
a quick run must not replace a measurement. A measurement that is impossible here gets no row: `Report.skip` gives the
reason, on a separate line. The CPU use of other programs is stored with the rows, so that the page of a busy machine
says so. A script belongs to a group of the page, see `GROUPS` in ``bench/__main__.py``.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results"


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Parameters
    ----------
    work
        The measurement, with its settings.
    quercus, peer
        The figures, with units; the default forest first, and the tree beside it; a peer with its name.
    ratio
        The result that depends least on the machine; above 1 Quercus is better.
    target
        The project's target, or empty.
    reached
        True if the target is reached; None without a target.
    """

    work: str
    quercus: str
    peer: str = ""
    ratio: str = ""
    target: str = ""
    reached: bool | None = None


@dataclass
class Report:
    """The rows of one script, with the facts needed to repeat it and to judge its figures."""

    title: str
    script: str
    command: str
    quick: bool
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    facts: dict[str, str | float] = field(default_factory=dict)

    def add(self, *rows: Row) -> None:
        """Add rows, and print them at once."""
        for row in rows:
            self.rows.append(row)
            figures = " · ".join(part for part in (row.quercus, row.peer, row.ratio) if part)
            print(f"  {row.work}: {figures}", flush=True)

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(f"  {text}", flush=True)

    def skip(self, what: str, why: str) -> None:
        """Report that `what` is not measured: it gets no row."""
        self.skipped.append(f"{what}: {why}")
        print(f"  NOT MEASURED: {what}: {why}", flush=True)


def table_folder(quick: bool) -> Path:
    """Return the folder of RESULTS.md."""
    return RESULTS / "quick" if quick else HERE


def kept_folder(quick: bool) -> Path:
    """Return the folder in which scripts store their rows."""
    return RESULTS / "quick" if quick else RESULTS


def parser(description: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line: ``--quick``, and a script's own options."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument(
        "--quick", action="store_true", help="less work and fewer repeats: a preview, not a measurement"
    )
    return found


def options() -> argparse.Namespace:
    """Return what the command line says: ``quick``."""
    return parser().parse_args()


@contextmanager
def reporting(title: str, packages: Sequence[str], *, quick: bool) -> Iterator[Report]:
    """Collect a script's rows, then print and store them."""
    script = Path(sys.argv[0]).name
    command = f"python bench/{script}" + (" --quick" if quick else "")
    report = Report(title, script, command, quick, packages=["quercus", "numpy", *packages])
    print(f"{title} ({command})", flush=True)
    started, before = time.monotonic(), _cpu_s()
    yield report
    took, others = time.monotonic() - started, np.subtract(_cpu_s(), before) @ (1, -1)
    report.facts = {
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "took_s": round(took, 1),
        "others_cores": round(max(0.0, float(others) / took), 2),
        "machine": f"{_processor()}, {os.cpu_count()} processors, {platform.system()} {platform.release()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *map(_version, report.packages)]),
    }
    _show(report)
    folder = kept_folder(quick)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{Path(script).stem}.json"
    kept.write_text(json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{script} took {took:.0f} s; other programs used {report.facts['others_cores']} cores", flush=True)


def _cpu_s() -> tuple[float, float]:
    """Return the CPU seconds of the machine, and those of this process and of children that have ended."""
    user, nice, system = map(int, Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=4)[1:4])
    own = os.times()
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), sum(own[:4])


def _show(report: Report) -> None:
    table = Table(title=report.title, caption="; ".join(map(str, report.facts.values())))
    for column in ("work", "Quercus", "peer", "ratio", "target"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for row in report.rows:
        verdict = "" if row.reached is None else (" ✓" if row.reached else " ✗")
        table.add_row(row.work, row.quercus, row.peer, row.ratio, row.target + verdict)
    Console(width=140).print(table)


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name  # a peer, whose version is that in its own environment


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor() or platform.machine()
