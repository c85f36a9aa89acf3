"""Measures false alarms of the drift signal on still streams, and the delay until it tells a change (theory §18).

python -m bench.accuracy.drift
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from quercus.trees.learners.drift import REFERENCE_ROWS, STEP_ROWS, accuracy_fall, changed_attributes
from quercus.trees.learners.recent_accuracy import BLOCK, BLOCKS, AccuracyBlock
from quercus.trees.tree.encoding import equal_width_edges

LABELS, STREAMS = 10_000, 200
ROWS, ATTRIBUTES, BINS = 10_000, 10, 4
NEEDED = REFERENCE_ROWS + 500


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


def main() -> None:
    """Print the figures of theory §18.3 and §18.4."""
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
