"""Weka's J48 (C4.5) on stream A, beside Quercus at the same stopping: time to build, hold-out accuracy.

Weka is driven as a process. It is looked for at $WEKA_JAR and where Debian's package `weka` puts it; without it or
without a Java machine the rows say so. The time is what Weka prints, wall time on a cold machine.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from _measure import Clock, milliseconds, times
from _report import Report, Row, options, reporting
from _streams import STOPPED, STOPPING, batches, hold_out, nominal, precise, train

from quercus.trees.growth.stream import GrowthState, grow

JAVA = shutil.which("java")
JAR = Path(os.environ.get("WEKA_JAR", "/usr/share/java/weka.jar"))
STREAM = nominal()


def missing() -> str:
    """Return why J48 cannot run, or nothing."""
    if JAVA is None:
        return "there is no Java machine (`java`) on the path"
    if not JAR.exists():
        return f"{JAR} does not exist; install Debian's package weka, or name the jar in WEKA_JAR"
    return ""


def write_arff(path: Path, X, y) -> None:
    values = ",".join(f"v{value}" for value in range(STREAM.values))
    classes = ",".join(f"c{klass}" for klass in range(STREAM.classes))
    head = [f"@attribute a{k} {{{values}}}" for k in range(X.shape[1])]
    rows = [
        ",".join([*(f"v{value}" for value in row), f"c{klass}"])
        for row, klass in zip(X.astype(int).tolist(), y.tolist(), strict=True)
    ]
    lines = ["@relation a", *head, f"@attribute class {{{classes}}}", "@data", *rows]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def run_j48(X, y, test, *flags: str) -> tuple[float, float]:
    """Return seconds to build as Weka prints them, and hold-out accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        learn, held = Path(folder) / "learn.arff", Path(folder) / "test.arff"
        write_arff(learn, X, y)
        write_arff(held, *test)
        command = [JAVA, "-XX:+UseSerialGC", "-cp", JAR, "weka.classifiers.trees.J48", *flags]
        ended = subprocess.run(
            [str(part) for part in (*command, "-t", learn, "-T", held, "-o")],
            capture_output=True,
            text=True,
            check=True,
        )
    built = re.search(r"build model:\s*([\d.]+) seconds", ended.stdout)
    right = re.findall(r"Correctly Classified Instances\s+\d+\s+([\d.]+)", ended.stdout)
    if built is None or not right:
        raise RuntimeError(f"Weka printed something else: {ended.stdout[:500]} {ended.stderr[:500]}")
    return float(built[1]), float(right[-1]) / 100  # the last is of the hold-out


def run_quercus(X, y, test) -> tuple[float, float]:
    spec = STREAM.specification(alpha=1.0, **STOPPING)
    contours = precise(y, STREAM.classes)
    clock = Clock()
    with clock:
        state = grow(GrowthState.initial(spec), batches(X, contours))
        flat = state.flat
    found = flat.klass[flat.route(state.encoder.codes(test[0]), test[0])]
    return clock.seconds, float((found == test[1]).mean())


def measure(report: Report, n: int, repeats: int) -> None:
    X, y = train(STREAM, n)
    test = hold_out(STREAM)
    why = missing()
    run_quercus(X, y, test)  # compiles what is needed
    variants = {
        "unpruned, as few as 2 rows": ("-U",),
        "unpruned, -M 10": ("-U", "-M", "10"),
        "pruned, its defaults": (),
    }
    ours, right = np.median([run_quercus(X, y, test) for _ in range(repeats)], axis=0)
    for name, flags in variants.items():
        work = f"stream A, {n:,} rows at once, α = 1, {STOPPED}, beside J48 {name}"
        figure = f"{milliseconds(ours)}, accuracy {right:.4f}"
        if why:
            report.add(Row(work, figure, f"**SKIPPED: {why}**"))
            continue
        theirs, peer = np.median([run_j48(X, y, test, *flags) for _ in range(repeats)], axis=0)
        ratio = f"{times(theirs / ours)}; {right - peer:+.4f}"
        report.add(Row(work, figure, f"Weka J48 {milliseconds(theirs)}, accuracy {peer:.4f}", ratio))


def main() -> None:
    quick = options().quick
    with reporting("Weka's J48", (), quick=quick) as report:
        if not missing():
            printed = subprocess.run(
                [str(JAVA), "-version"], capture_output=True, text=True, check=True
            ).stderr
            report.note(f"Weka: {JAR.resolve().name}; Java: {printed.splitlines()[0]}")
            report.note(
                "Weka's time is wall time: on a busy machine the ratio flatters Quercus, whose time is CPU time."
            )
        for n in (10_000,) if quick else (10_000, 100_000):
            measure(report, n, 1 if quick else 3)


if __name__ == "__main__":
    main()
