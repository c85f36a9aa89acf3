"""The single tree on real streams, with and without the test that splits must pass, against River's Hoeffding tree.

Run: python bench/accuracy/single_tree.py --data FOLDER --kinds KINDS.json [--rows 40000] [--levels 0,10]
     [--cuts 32] [--memories 0,2000] [--no-river] [--scaling]

Labels come at once. Quercus has default settings but for the number of cuts: it takes batches of 1,000 rows, predicts
each by the tree of all rows before it, or of the last ones if it has a memory (0: of all), and is looked at after each.
River's tree learns every row as soon as it has predicted it. CPU seconds are of learning and predicting together.
`--scaling`: stream A with a limit of depth and without, a look every 10,000 rows.
"""

import argparse
import math
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from quercus.belief.frame import Frame
from quercus.experiments.datasets import DataSet, in_folder
from quercus.specification.algorithms import Abc45
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.trees.growth.stream import GrowthState, Observed, grow

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _measure import Clock
from _peers import run_quercus
from _streams import STOPPING, UNLIMITED, hold_out, nominal, precise, train

BATCH = 1_000
SETS = ("electricity", "weather_noaa", "covertype_100k")


def quercus(data: DataSet, rows: int, level: float, cuts: int | None, memory: int | None = None) -> str:
    attributes = tuple(replace(a, cuts=cuts) if isinstance(a, Numeric) else a for a in data.attributes)
    state = GrowthState.initial(
        Specification(
            attributes,
            Frame(data.classes),
            warmup_rows=BATCH,
            algorithm=Abc45(),
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
    from river.tree import HoeffdingTreeClassifier  # noqa: PLC0415 - a peer may be missing

    model, clock, right = HoeffdingTreeClassifier(), Clock(), 0
    named = [(a.name, isinstance(a, Nominal)) for a in data.attributes]
    for values, klass in zip(data.values[:rows].tolist(), data.targets[:rows].tolist(), strict=True):
        row = {
            name: f"v{value:.0f}" if nominal else value
            for (name, nominal), value in zip(named, values, strict=True)
            if not math.isnan(value)
        }
        with clock:
            right += model.predict_one(row) == klass
            model.learn_one(row, klass)
    return f"{right / rows:.4f}, {model.n_nodes:,} nodes, {clock.seconds:.1f} s"


def scaling(levels: list[float]) -> None:
    stream = nominal()
    held = hold_out(stream, 20_000)
    for stopping in (STOPPING, UNLIMITED):
        for level in levels:
            spec = stream.specification(alpha=1.0, split_significance=level, **stopping)
            cost = {}
            for n in (30_000, 100_000, 300_000):
                X, y = train(stream, n)
                looks = {*range(10_000, n, 10_000), n}
                run = run_quercus(spec, X, precise(y, stream.classes), looks, held)
                cost[n] = run.seconds
                print(f"A, {stopping}, level {level:g}, {n:,} rows: {run.accuracy[n]:.4f}, {run.nodes:,} nodes, "
                      f"{run.seconds:.2f} s")  # fmt: skip
            exponent = math.log(cost[300_000] / cost[30_000]) / math.log(10)
            print(f"A, {stopping}, level {level:g}: exponent {exponent:.2f} from 30,000 to 300,000 rows")


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
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    levels = [float(level) for level in options.levels.split(",")]
    if options.scaling:
        scaling(levels)
        return
    if options.data is None:
        sys.exit("nothing is measured: it needs --data")
    for name in options.sets.split(","):
        (data,) = in_folder(options.data, [name], options.kinds)
        rows = min(options.rows, len(data))
        quercus(data, 3 * BATCH, 1.0, options.cuts or None)  # compiles what is needed
        for level, memory in product(levels, map(int, options.memories.split(","))):
            found = quercus(data, rows, level, options.cuts or None, memory or None)
            print(f"{name}, {rows:,} rows, level {level:g}, memory {memory:,}: {found}", flush=True)
        if options.no_river:
            continue
        try:
            print(f"{name}, {rows:,} rows, River HoeffdingTree: {river(data, rows)}", flush=True)
        except ModuleNotFoundError:
            print("River is not installed: it is NOT measured", file=sys.stderr)


if __name__ == "__main__":
    main()
