"""Run every measurement of this folder, one process each, and write RESULTS.md: ``python bench [--quick] [--table]``.

A script's earlier results stay on the page until it runs again; ``--table`` only writes the page.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from _report import HERE, kept_folder, table_folder

GROUPS = {
    "The application: it classifies": ("classify", "workers", "cores"),
    "The pipeline: it pushes rows, and its streams change": ("service", "streams"),
    "The labeller: waits for a query": ("first_forest", "answer", "queries"),
    "The operator: many rows, many models, restarts": (
        "grower",
        "scaling",
        "models",
        "neighbours",
        "postgres",
        "archive",
    ),
    "The researcher: learns at once, and wants proofs": ("induction", "intervals"),
}
"""Groups by kind of user, and their scripts, in the order of the page."""

BUSY_CORES = 0.3
"""If other programs use more of the machine than this, figures are interim."""

HEADER = """# What was measured

Written by `make bench`; each row says which command measures it again. Quercus has the settings that a user gets: the
default forest first, the tree beside it where a user would choose it. CPU time is that of one core; runs of Quercus and
of its peer take turns. A plain ratio above 1 is in favour of Quercus; others say what they compare, as the target does.
"""
COLUMNS = ("work", "Quercus", "peer", "ratio", "target", "reached", "command")


def scripts() -> list[Path]:
    """Return the scripts in the order of the page."""
    return [path for names in GROUPS.values() for name in names if (path := HERE / f"{name}.py").exists()]


def run(arguments: list[str]) -> list[str]:
    """Run the scripts; return the names of those that failed."""
    # one core is compared: libraries must not use the others
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    failed, started = [], time.monotonic()
    for script in scripts():
        print(f"== {script.name}", flush=True)
        ended = subprocess.run([sys.executable, script, *arguments], env=environment, check=False)
        if ended.returncode:
            failed.append(script.name)
    print(f"all scripts took {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    return failed


def page(reports: dict[str, dict[str, Any]]) -> str:
    """Return the page of these reports, by the names of their scripts."""
    lines = [HEADER, *facts(list(reports.values()))]
    for title, names in GROUPS.items():
        mine = [reports[name] for name in names if name in reports and reports[name]["rows"]]
        if not mine:
            continue
        lines += ["", f"## {title}", "", _line(COLUMNS), _line("---" for _ in COLUMNS)]
        for report in mine:
            for row in report["rows"]:
                reached = {None: "", True: "yes", False: "**no**"}[row["reached"]]
                figures = [row[name] for name in ("work", "quercus", "peer", "ratio", "target")]
                lines.append(_line([*figures, reached, f"`{report['command']}`"]))
        notes = [f"- {note}" for report in mine for note in report["notes"]]
        lines += ["", *notes] if notes else []
    return "\n".join(lines) + "\n"


def facts(reports: list[dict[str, Any]]) -> list[str]:
    """Return date, machine and versions of the measurement, and the number of targets reached."""
    every = [report["facts"] for report in reports]
    judged = [row["reached"] for report in reports for row in report["rows"] if row["reached"] is not None]
    dates = sorted(each["measured"] for each in every)
    versions = dict.fromkeys(word for each in every for word in each["versions"].split(", "))
    skipped = dict.fromkeys(each for report in reports for each in report["skipped"])
    busy = [report["script"] for report in reports if report["facts"]["others_cores"] > BUSY_CORES]
    lines = [
        f"- **{sum(judged)} of {len(judged)} targets are reached.**",
        f"- When: {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
        if dates
        else "- When: never",
        *(f"- Machine: {machine}" for machine in dict.fromkeys(each["machine"] for each in every)),
        f"- Versions: {', '.join(versions)}",
    ]
    if busy:
        lines.append(f"- **Interim: other programs used the machine while these ran: {', '.join(busy)}.**")
    if skipped:
        lines.append(f"- Not measured: {'; '.join(skipped)}")
    return lines


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    failed = [] if "--table" in arguments else run(arguments)
    kept = [kept_folder(quick) / f"{script.stem}.json" for script in scripts()]
    reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in kept if path.exists()}
    reports = {
        name: each for name, each in reports.items() if "others_cores" in each["facts"]
    }  # not an older form
    written = table_folder(quick) / "RESULTS.md"
    written.write_text(page(reports), encoding="utf-8")
    print(f"wrote {written}")
    if failed:
        sys.exit(f"these ended in an error, their rows are missing or old: {', '.join(failed)}")


if __name__ == "__main__":
    main()
