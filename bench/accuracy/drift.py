"""Measures false alarms of the drift signal on still streams, and the delay until it tells a change (theory §18).

Run: python bench/accuracy/drift.py [--real electricity,weather_noaa,… [--rows 20000] [--seeds 3]]

Without --real, the labels are simulated. With it, the forest (100 trees) predicts real rows, whose labels come in
blocks of 50 after the prediction; a look after each. Three orders of the rows:

`shuffled`: nothing changes, so each alarm is false. `swapped`: shuffled, and from the middle on the two commonest
classes change places, in all rows or in a share of them: labels until the alarm. `as it came`: when the world changed
nobody knows; an alarm is *borne out* if the forest, learning on, is less often right about the 500 labels after the
alarm than about the 1,000 before it. Rows are the first 20,000, of the others half as many.

Where River is installed, its ADWIN follows the same errors, one by one, with its own level (.002); it also tells when
errors become fewer, which is not counted here.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _data import FOLDER, KINDS, is_nominal, read_real

from quercus.experiments.datasets import DataSet
from quercus.trees import MemoryForest
from quercus.trees.learners.drift import REFERENCE_ROWS, STEP_ROWS, accuracy_fall, changed_attributes
from quercus.trees.learners.recent_accuracy import BLOCK, BLOCKS, AccuracyBlock
from quercus.trees.tree.encoding import equal_width_edges

LABELS, STREAMS = 10_000, 200
ROWS, ATTRIBUTES, BINS = 10_000, 10, 4
NEEDED = REFERENCE_ROWS + 500
TREES, LEVEL = 100, 0.75
SWAPPED = (1.0, 0.5, 0.25)
AFTER = 500  # labels after an alarm

Right = NDArray[np.bool_]
Alarms = Callable[[Right], Iterator[tuple[int, bool]]]
"""Yields the number of labels at each look and whether there is an alarm, by whether each row was predicted rightly."""


def alarms(right: NDArray[np.bool_]) -> Iterator[tuple[int, bool]]:
    """Yield the number of labels of each look, and whether the accuracy fell."""
    counts = right.reshape(-1, BLOCK).sum(axis=1).tolist()
    blocks = [AccuracyBlock(BLOCK, BLOCK, count, float(count)) for count in counts]
    for end in range(2, len(blocks) + 1):
        yield end * BLOCK, accuracy_fall(blocks[max(0, end - BLOCKS) : end]) is not None


def begun(told: list[bool]) -> int:
    """Return how many alarms begin."""
    return sum(now and not before for before, now in zip([False, *told], told, strict=False))


def row_alarms(values: NDArray[np.float64]) -> list[bool]:
    """Return, for each look, whether an attribute has changed."""
    codes = np.column_stack(
        [np.searchsorted(equal_width_edges(each[:100], BINS), each, side="right") for each in values.T]
    )
    starts = np.zeros(codes.shape[1], np.int64)
    ends = range(1_000, len(codes) + 1, STEP_ROWS)
    return [bool(changed_attributes(codes[max(0, end - NEEDED) : end], starts)) for end in ends]


def river_alarms(right: Right) -> Iterator[tuple[int, bool]]:
    """Yield what River's ADWIN says of the same labels."""
    adwin = import_module("river.drift").ADWIN()
    for start in range(0, len(right) - BLOCK + 1, BLOCK):
        told = False
        for error in ~right[start : start + BLOCK]:
            before = adwin.estimation
            adwin.update(float(error))
            told |= adwin.drift_detected and adwin.estimation > before
        yield start + BLOCK, told


def predicted_rightly(data: DataSet, values: NDArray[np.float64], targets: NDArray[np.int64]) -> Right:
    """Return whether the forest predicts each row rightly before it learns its block."""
    l = len(data.classes)
    forest = MemoryForest(is_nominal(data), l, trees=TREES, seed=0, level=LEVEL)
    right = np.zeros(len(targets) // BLOCK * BLOCK, np.bool_)
    for start in range(0, len(right), BLOCK):
        here = slice(start, start + BLOCK)
        right[here] = forest.theta(values[here]).argmax(axis=1) == targets[here]
        forest.observe(values[here], np.eye(l)[targets[here]])
    return right


def borne_out(right: Right, told: list[tuple[int, bool]]) -> list[bool]:
    """Return, for each alarm that begins, whether what comes is less often right than what was before it."""
    found, before = [], False
    for at, now in told:
        if now and not before and at + AFTER <= len(right):
            found.append(right[at : at + AFTER].mean() < right[max(0, at - 2 * AFTER) : at].mean())
        before = now
    return found


def on_real_rows(name: str, rows: int, seeds: int, detectors: dict[str, Alarms]) -> None:
    """Print the figures of a real set."""
    data = read_real(FOLDER, name, KINDS)
    values, targets = data.values[:rows], data.targets[:rows].astype(np.int64)
    right = predicted_rightly(data, values, targets)
    for detector, of in detectors.items():
        told = list(of(right))
        out, share = borne_out(right, told), np.mean([now for _, now in told])
        print(
            f"{name}, as it came, {len(right):,} labels, {detector}: {begun([now for _, now in told])} alarms, "
            f"{share:.0%} of looks; {sum(out)} of {len(out)} borne out",
            flush=True,
        )
    count, middle = rows // 2, rows // 4 // BLOCK * BLOCK
    first, second = np.bincount(targets).argsort()[::-1][:2]
    false = dict.fromkeys(detectors, 0)
    delays: dict[tuple[str, float], list[int]] = {(d, share): [] for d in detectors for share in SWAPPED}
    drop = {share: list[float]() for share in SWAPPED}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(targets))[:count]
        x, y = values[order], targets[order]
        right = predicted_rightly(data, x, y)
        for detector, of in detectors.items():
            false[detector] += begun([now for _, now in of(right)])
        for share in SWAPPED:
            other = np.where(y == first, second, np.where(y == second, first, y))
            late = (np.arange(count) >= middle) & (rng.random(count) < share)
            right = predicted_rightly(data, x, np.where(late, other, y))
            drop[share].append(right[middle - AFTER : middle].mean() - right[middle : middle + AFTER].mean())
            for detector, of in detectors.items():
                told_at = [at - middle for at, now in of(right) if now and at > middle]
                delays[detector, share] += told_at[:1]
    for detector in detectors:
        print(f"{name}, shuffled, {detector}: {false[detector]} alarms in {seeds * count:,} labels")
        for share in SWAPPED:
            told = delays[detector, share]
            median = f", after {np.median(told):.0f} labels (median)" if told else ""
            print(
                f"{name}, {share:.0%} swapped (right less often by {np.mean(drop[share]):.3f} in {AFTER} labels), "
                f"{detector}: {len(told)} of {seeds} told{median}",
                flush=True,
            )


def main() -> None:
    """Print the figures of theory §18.3 and §18.4."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--real", default="")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.real:
        detectors: dict[str, Alarms] = {"Quercus": alarms}
        if find_spec("river"):
            detectors["River's ADWIN"] = river_alarms
        else:
            print("SKIPPED: River is not installed", file=sys.stderr)
        for name in options.real.split(","):
            on_real_rows(name, options.rows, options.seeds, detectors)
        return
    rng = np.random.default_rng(0)
    for share in (0.5, 0.8, 0.95):
        false = sum(begun([told for _, told in alarms(rng.random(LABELS) < share)]) for _ in range(STREAMS))
        print(f"still, accuracy {share}: {false / STREAMS:.3f} alarms in {LABELS:,} labels")
    for before, since in ((0.9, 0.7), (0.9, 0.8)):
        found = []
        for _ in range(STREAMS):
            right = np.concatenate([rng.random(1_000) < before, rng.random(1_000) < since])
            found.append(next((at - 1_000 for at, told in alarms(right) if told and at > 1_000), None))
        told = sorted(each for each in found if each is not None)
        print(
            f"{before} then {since}: {len(told) / STREAMS:.0%} told, after {told[len(told) // 2]} labels (median)"
        )
    false = sum(begun(row_alarms(rng.normal(size=(ROWS, ATTRIBUTES)))) for _ in range(20))
    print(f"still rows: {false / 20:.2f} alarms in {ROWS:,} rows of {ATTRIBUTES} attributes")


if __name__ == "__main__":
    main()
