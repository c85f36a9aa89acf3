"""The single tree on real streams, with and without the test that splits must pass, against River's Hoeffding tree.

Run: python bench/accuracy/single_tree.py --data FOLDER --kinds KINDS.json [--rows 40000] [--levels 0,10]
     [--cuts 32] [--memories 0,2000] [--no-river]

Labels come at once. Quercus has default settings but for the number of cuts: it takes batches of 1,000 rows, predicts
each by the tree of all rows before it, or of the last ones if it has a memory (0: of all), and is looked at after each.
River's tree learns every row as soon as it has predicted it. CPU seconds are of learning and predicting together.
"""

import argparse
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from quercus.belief.frame import Frame
from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.trees import Abc45
from quercus.trees.growth.stream import GrowthState, Observed, grow

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _data import is_nominal, read_real
from _measure import Clock
from _peers import Stream, following, missing

BATCH = 1_000
SETS = ("electricity", "weather_noaa", "covertype_100k")


def quercus(data: DataSet, rows: int, level: float, cuts: int | None, memory: int | None = None) -> str:
    attributes = tuple(replace(a, cuts=cuts) if isinstance(a, Numeric) else a for a in data.attributes)
    state = GrowthState.initial(
        Specification(
            attributes,
            Frame(data.classes),
            warmup_rows=BATCH,
            learner=Abc45(),
            split_significance=level,
            memory_rows=memory,
        )
    )
    clock, right, known = Clock(), 0, np.eye(len(data.classes))
    for start in range(0, rows, BATCH):
        part = slice(start, min(start + BATCH, rows))
        values, targets = data.values[part], data.targets[part]
        with clock:
            flat = state.flat
            found = flat.klass[flat.route(state.encoder.codes(values), values)] if start else targets * 0
            state = grow(state, [Observed(values, known[targets])])
        right += int((found == targets).sum())
    return f"{right / rows:.4f}, {flat.size:,} nodes, {clock.seconds:.1f} s"


def river(data: DataSet, rows: int) -> str:
    stream = Stream(data.values[:rows], data.targets[:rows], is_nominal(data), len(data.classes))
    with following(stream, ["HT"], late=0) as follow:
        found = follow("HT", 0, rows)
    return f"{found.right / rows:.4f}, {found.cpu_s:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kinds", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--levels", default="0,10")
    parser.add_argument("--cuts", type=int, default=32)
    parser.add_argument("--memories", default="0")
    parser.add_argument("--no-river", action="store_true")
    options = parser.parse_args()
    levels = [float(level) for level in options.levels.split(",")]
    if options.data is None:
        sys.exit("nothing is measured: it needs --data")
    for name in options.sets.split(","):
        data = read_real(options.data, name, options.kinds)
        rows = min(options.rows, len(data))
        quercus(data, 3 * BATCH, 1.0, options.cuts or None)  # compiles what is needed
        for level, memory in product(levels, map(int, options.memories.split(","))):
            found = quercus(data, rows, level, options.cuts or None, memory or None)
            print(f"{name}, {rows:,} rows, level {level:g}, memory {memory:,}: {found}", flush=True)
        if options.no_river:
            continue
        if why := missing("HT"):
            print(f"River is NOT measured: {why}", file=sys.stderr)
        else:
            print(f"{name}, {rows:,} rows, River HoeffdingTree: {river(data, rows)}", flush=True)


if __name__ == "__main__":
    main()
