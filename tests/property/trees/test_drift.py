"""The drift signal: what it finds, how rarely it is wrong, and that it is a function of the log."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.belief.codec import encode_sets
from quercus.belief.frame import Frame
from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.storage import InstanceColumns
from quercus.trees import AccuracyBlock, ActiveForest, Drift, accuracy_fall, changed_attributes


def blocks_of(right: Sequence[bool]) -> list[AccuracyBlock]:
    counts = np.reshape(right, (-1, 50)).sum(axis=1).tolist()
    return [AccuracyBlock(50, 50, count, float(count)) for count in counts]


def plain_fall(right: Sequence[bool], confidence: float) -> set[int]:
    """Numbers of labels since each cut across which the error rises by more than the bound, row by row."""
    n, found = len(right), set()
    p = sum(right) / n
    for cut in range(50, n, 50):
        before, since = right[:cut], right[cut:]
        m = 1 / (1 / len(before) + 1 / len(since))
        doubt = np.log(np.log(n) / confidence)
        bound = np.sqrt(2 / m * p * (1 - p) * doubt) + 2 / (3 * m) * doubt
        if sum(before) / len(before) - sum(since) / len(since) > bound:
            found.add(n - cut)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_fall_is_found_where_a_slow_reading_of_the_bound_finds_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ahead, behind = int(rng.integers(3, 15)) * 50, int(rng.integers(1, 6)) * 50
    right = [*(rng.random(ahead) < 0.9), *(rng.random(behind) < rng.choice([0.85, 0.6]))]
    found, cuts = accuracy_fall(blocks_of(right)), plain_fall(right, 0.02)
    assert (found is None) == (not cuts)
    if found is not None:
        assert found.labels in cuts
        assert found.before - found.since > 0


def test_still_streams_rarely_alarm_and_changes_are_found_soon() -> None:
    """40 streams of 5,000 labels, in 20 blocks at a time, and 40 that fall from .9 to .7."""
    rng = np.random.default_rng(0)
    false = sum(
        accuracy_fall(blocks[max(0, end - 20) : end]) is not None
        for blocks in (blocks_of(rng.random(5_000) < 0.8) for _ in range(40))
        for end in range(2, 101)
    )
    assert false <= 40  # looks, of 3,960
    for _ in range(40):
        blocks = blocks_of([*(rng.random(500) < 0.9), *(rng.random(300) < 0.7)])
        assert any(accuracy_fall(blocks[:end]) for end in range(11, 17))
        assert accuracy_fall(blocks_of([*(rng.random(500) < 0.6), *(rng.random(500) < 0.95)])) is None


def test_an_attribute_is_named_whose_values_changed() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, size=(4_000, 6))
    starts = np.zeros(6, np.int64)
    assert changed_attributes(codes, starts) == []
    codes[3_600:, 2] = rng.integers(0, 2, size=400)
    codes[3_500:, 4] = 3
    (first, far), (second, near) = changed_attributes(codes, starts)
    assert (first, second) == (4, 2)
    assert far == pytest.approx(0.75, abs=0.05)
    assert near == pytest.approx(0.4, abs=0.05)
    assert changed_attributes(codes, np.array([0, 0, 0, 0, 3_400, 0])) == [(2, near)]  # too few before
    assert changed_attributes(codes[:900], starts) == []
    assert changed_attributes(codes[:3_999, :2], starts[:2]) == changed_attributes(
        codes[:3_900, :2], starts[:2]
    )


SPECIFICATION = Specification(
    (Numeric("x"), Numeric("y"), Nominal("z", ("a", "b"))),
    Frame(("no", "yes")),
    learner=ActiveForest(trees=12),
)


def changing_log() -> tuple[NDArray[np.float64], list[bytes]]:
    """Rows whose class follows x, and after 1,600 rows its opposite; y moves as well."""
    rng = np.random.default_rng(2)
    values = np.column_stack([rng.random(2_100), rng.random(2_100), rng.integers(2, size=2_100)])
    klass = (values[:, 0] > 0.5).astype(int)
    klass[1_600:] = 1 - klass[1_600:]
    values[1_600:, 1] += 0.5
    return values, encode_sets((1 << klass).astype(np.uint64))


def folded(parts: Sequence[int], looks: bool) -> TreeEngine:
    values, labels = changing_log()
    engine, ends = tree_engine(SPECIFICATION), [0, *parts, len(values)]
    for first, end in pairwise(ends):
        engine.fold_events([InstanceColumns(first + 1, values[first:end], labels[first:end])])
        if looks:
            engine.grown_trees({})
    engine.grown_trees({})
    return engine


def test_the_signal_is_a_function_of_the_log_whatever_the_parts_and_the_restarts() -> None:
    at_once = folded([], looks=False)
    drift = at_once.find_drift(at_once.accuracy)
    assert drift.accuracy is not None
    assert drift.accuracy.before - drift.accuracy.since > 0.2
    assert abs(drift.accuracy.labels - 500) <= 100
    assert [at_once.attribute_names[k] for k, _ in drift.attributes] == ["y"]
    in_parts = folded([1, 70, 1_500, 1_777], looks=True)
    assert in_parts.find_drift(in_parts.accuracy) == drift
    saved = at_once.saved_state()
    assert saved is not None
    restarted = tree_engine(SPECIFICATION)
    restarted.restore_state(saved)
    restarted.grown_trees({})
    assert restarted.find_drift(restarted.accuracy) == drift


def test_a_still_log_has_no_signal() -> None:
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.random(1_800), rng.random(1_800), rng.integers(2, size=1_800)])
    labels = encode_sets((1 << (values[:, 0] > 0.5).astype(int)).astype(np.uint64))
    engine = tree_engine(SPECIFICATION)
    engine.fold_events([InstanceColumns(1, values, labels)])
    engine.grown_trees({})
    assert engine.find_drift(engine.accuracy) == Drift()
