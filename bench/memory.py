"""Memory after learning stream A: the resident size of a fresh process that has done nothing else.

Rows are generated in chunks and forgotten. What the interpreter, its libraries and the compiled kernels take is there
before the first row, and shown. River's HoeffdingTree keeps no rows; it is measured the same way at the smaller size.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

CHUNK = 10_000
TARGET_MB = 300
FOREST_TARGET_MB = 1_000
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def grow_quercus(n: int, alpha: float, kind: str) -> dict[str, float]:
    """Grow n rows with a look at the tree every 10,000, and measure."""
    import numpy as np  # noqa: PLC0415 - the child process loads what it measures, and nothing else
    from _streams import STOPPING, TRAIN_SEED, doubtful, nominal, precise  # noqa: PLC0415

    from quercus.server.growth import memory_release  # noqa: PLC0415
    from quercus.trees.growth.stream import GrowthState, Observed, grow  # noqa: PLC0415

    memory_release.keep_small()  # as the grower does
    stream, rng = nominal(), np.random.default_rng(TRAIN_SEED)
    contours = {"precise": precise, "doubtful": doubtful}[kind]
    spec = stream.specification(alpha=alpha, **STOPPING)

    def learn(state, rows):
        X, y = stream.draw(rng, rows)
        state = grow(state, [Observed(X, contours(y, stream.classes))])
        return state, state.flat.size

    learn(GrowthState.initial(spec), 2_000)  # compiles what is needed
    before, started = resident_mb(), time.process_time()
    state, nodes = GrowthState.initial(spec), 0
    for _ in range(n // CHUNK):
        state, nodes = learn(state, CHUNK)
    return {
        "before": before,
        "after": resident_mb(),
        "peak": peak_mb(),
        "nodes": nodes,
        "seconds": time.process_time() - started,
    }


def grow_forest(n: int) -> dict[str, float]:
    """Grow a forest of 60 trees on n rows of stream B, all labelled, with a look at the end and one 50 rows later."""
    import numpy as np  # noqa: PLC0415
    from _streams import TRAIN_SEED, numeric, precise  # noqa: PLC0415

    from quercus.server.growth import memory_release  # noqa: PLC0415
    from quercus.trees.memory_forest.forest import MemoryForest  # noqa: PLC0415

    memory_release.keep_small()
    stream, rng = numeric(), np.random.default_rng(TRAIN_SEED)

    def forest() -> MemoryForest:
        return MemoryForest(np.zeros(stream.attributes, bool), stream.classes, trees=60, seed=0, level=0.75)

    def learn(forest: MemoryForest, rows: int) -> None:
        X, y = stream.draw(rng, rows)
        forest.observe(X, precise(y, stream.classes))

    learn(small := forest(), 2_000)
    small.members()  # compiles what is needed
    before, started, grown = resident_mb(), time.process_time(), forest()
    for _ in range(n // CHUNK):
        learn(grown, CHUNK)
    grown.members()
    learn(grown, 50)
    looked = time.process_time()
    nodes = sum(len(tree) for tree in grown.members().trees)
    return {
        "before": before,
        "after": resident_mb(),
        "peak": peak_mb(),
        "nodes": nodes,
        "seconds": looked - started,
        "look_s": time.process_time() - looked,
    }


def grow_river(n: int) -> dict[str, float]:
    """Let River learn n rows, and measure."""
    import numpy as np  # noqa: PLC0415
    from _streams import TRAIN_SEED, dictionaries, nominal  # noqa: PLC0415
    from river.tree import HoeffdingTreeClassifier  # noqa: PLC0415

    stream, rng = nominal(), np.random.default_rng(TRAIN_SEED)
    model = HoeffdingTreeClassifier(nominal_attributes=[f"a{k}" for k in range(stream.attributes)])
    before, started = resident_mb(), time.process_time()
    for _ in range(n // CHUNK):
        X, y = stream.draw(rng, CHUNK)
        for row, label in zip(dictionaries(X), y.tolist(), strict=True):
            model.learn_one(row, label)
    return {
        "before": before,
        "after": resident_mb(),
        "peak": peak_mb(),
        "nodes": model.n_nodes,
        "seconds": time.process_time() - started,
    }


def child(*arguments: str) -> dict[str, float]:
    """Return what a fresh process measured of itself."""
    command = [sys.executable, __file__, "child", *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def main() -> None:
    from _report import Row, options, reporting  # noqa: PLC0415 - matplotlib must not weigh on the children

    quick = options().quick
    small, large = (20_000, 50_000) if quick else (100_000, 1_000_000)
    with reporting("Memory on stream A", ("river"), quick=quick) as report:
        river = child("river", f"{small}")
        river_text = (
            f"River HoeffdingTree, {small:,} rows: {river['after'] - river['before']:.0f} MB of its own"
        )
        forest = child("forest", f"{large}")
        report.add(
            Row(
                f"memory after {large:,} rows × 10 attributes, forest of 60 trees, {forest['nodes']:,} nodes",
                f"{forest['after']:.0f} MB in all (peak {forest['peak']:.0f})",
                "",
                "",
                f"< {FOREST_TARGET_MB} MB in all, at its peak",
                forest["peak"] < FOREST_TARGET_MB,
            )
        )
        report.note(
            f"the forest: {forest['seconds']:.1f} CPU-s; a look 50 rows later {forest['look_s']:.2f} CPU-s."
        )
        works = [(small, 1.0, "precise"), (large, 1.0, "precise"), (large, 0.8, "doubtful")]
        for n, alpha, kind in works:
            child(
                "quercus", f"{2 * CHUNK}", f"{alpha}", kind
            )  # whoever compiles pays in memory too: not this once
            ours = child("quercus", f"{n}", f"{alpha}", kind)
            own = ours["after"] - ours["before"]
            per_row = (ours["after"] - ours["before"]) * 1e6 / n
            labels = "precise labels" if kind == "precise" else "half vacuous, a quarter set-valued"
            judged = n == large
            report.add(
                Row(
                    f"memory after {n:,} rows × 10 attributes, α = {alpha:g}, {labels}, {ours['nodes']:,} nodes",
                    f"{ours['after']:.0f} MB in all (peak {ours['peak']:.0f}), {own:.0f} MB its own, "
                    f"{per_row:.0f} bytes a row",
                    "" if judged else river_text,
                    "",
                    f"< {TARGET_MB} MB in all, at its peak" if judged else "",
                    ours["peak"] < TARGET_MB if judged else None,
                )
            )
            report.note(
                f"{n:,} rows, α = {alpha:g}, {labels}: {ours['seconds']:.1f} CPU-s, drawing the rows included."
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _, _, who, count, *rest = sys.argv
        found = (
            grow_quercus(int(count), float(rest[0]), rest[1])
            if who == "quercus"
            else {"river": grow_river, "forest": grow_forest}[who](int(count))
        )
        print(json.dumps(found))
    else:
        main()
