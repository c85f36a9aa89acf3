"""The recent accuracy of predictions: blocks of 50 rows, the last twenty of which stay."""

import numpy as np

from quercus.trees.learners.recent_accuracy import BLOCKS, AccuracyBlock, count_rows


def test_rows_fill_blocks_whatever_the_batches() -> None:
    rng = np.random.default_rng(0)
    predicted, klass = rng.integers(3, size=(2, 1_730))
    contours = np.eye(3)[klass]
    at_once = count_rows((), predicted, contours)
    in_parts: tuple[AccuracyBlock, ...] = ()
    for part in np.array_split(np.arange(1_730), 97):
        in_parts = count_rows(in_parts, predicted[part], contours[part])
    assert [block.rows for block in in_parts] == [50] * (BLOCKS - 1) + [1_730 % 50]
    assert at_once[-1].rows <= 50
    assert sum(block.rows for block in at_once) >= (BLOCKS - 1) * 50
    right = (predicted == klass)[-(sum(block.rows for block in in_parts)) :]
    assert sum(block.right for block in in_parts) == right.sum()


def test_an_uncertain_label_counts_by_its_pignistic_probability() -> None:
    contours = np.array([[1.0, 1.0, 0.0], [0.2, 0.4, 0.0], [0.0, 0.3, 0.0]])
    (block,) = count_rows((), np.array([0, 0, 1]), contours)
    assert (block.rows, block.precise_rows, block.right) == (3, 1, 1)
    assert block.expected == 0.5 + 0.25 + 1.0
