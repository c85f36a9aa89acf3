"""Run every measurement of this folder, one process each, and write RESULTS.md: ``python bench [--quick] [--table]``.

What a script kept of an earlier run stays in the table until that script runs again; ``--table`` runs none of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _report import HERE, kept_folder, table_folder

HEADER = """# What was measured

Written by `make bench`; each row says which command measures it again. Figures are CPU time of one core of the machine
named below, medians of runs in which Quercus and its peer took turns, unless a row says otherwise; ratios outlive the
machine, absolute figures do not. A ratio above 1 is in favour of Quercus.
"""
COLUMNS = ("work", "Quercus", "peer", "ratio", "target", "reached", "command")


def scripts(quick: bool) -> list[Path]:
    """Return the scripts; if `quick`, those alone that take less time on demand."""
    every = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("_"))
    return [path for path in every if not quick or "--quick" in path.read_text(encoding="utf-8")]


def run(arguments: list[str]) -> list[str]:
    """Run the scripts; return the names of those that failed."""
    # one core is what is compared: libraries must not spread over the others
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    failed = []
    for script in scripts(quick="--quick" in arguments):
        print(f"== {script.name}", flush=True)
        ended = subprocess.run([sys.executable, script, *arguments], env=environment, check=False)
        if ended.returncode:
            failed.append(script.name)
    return failed


def table(reports: list[dict[str, Any]]) -> str:
    judged = [row["reached"] for report in reports for row in report["rows"] if row["reached"] is not None]
    tally = f"{sum(judged)} of {len(judged)} rows with a target reach it.\n"
    lines = [HEADER, tally, _line(COLUMNS), _line("---" for _ in COLUMNS)]
    for report in reports:
        for row in report["rows"]:
            reached = {None: "", True: "yes", False: "**no**"}[row["reached"]]
            figures = [row[name] for name in ("work", "quercus", "peer", "ratio", "target")]
            lines.append(_line([*figures, reached, f"`{report['command']}`"]))
    for report in reports:
        lines += ["", f"## {report['title']}", ""]
        lines += [f"- {note}" for note in report["notes"]]
        lines += [f"- {name}: {value}" for name, value in report["facts"].items()]
        lines += [line for plot in report["plots"] for line in ("", f"![{report['title']}]({plot})")]
    return "\n".join(lines) + "\n"


def _line(cells) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    failed = [] if "--table" in arguments else run(arguments)
    kept = [kept_folder(quick) / f"{script.stem}.json" for script in scripts(quick)]
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in kept if path.exists()]
    written = table_folder(quick) / "RESULTS.md"
    written.write_text(table(reports), encoding="utf-8")
    print(f"wrote {written}")
    if failed:
        sys.exit(f"these ended in an error, their rows are missing or old: {', '.join(failed)}")


if __name__ == "__main__":
    main()
