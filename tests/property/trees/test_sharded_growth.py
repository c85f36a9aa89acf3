"""However rows are dealt, the tree of the shards is the tree of one process, to the bit."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sharded import assert_same_trees, sharded_rows
from support.tasks import given as given_rows

from quercus.belief.errors import InvalidInput
from quercus.compute.sharded import deal, grow_sharded, shard
from quercus.specification.algorithms import Pruning
from quercus.trees import GrowthState, Observed, grow


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(0, 700),
    where=st.lists(st.floats(0, 1), min_size=1, max_size=2),
    alpha=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    significance=st.sampled_from([0.0, 10.0]),
    depth=st.sampled_from([None, 0, 3]),
    warmup=st.sampled_from([1, 50, 1_000]),
    memory=st.sampled_from([None, 1, 30, 300]),
    few=st.booleans(),
)
def test_two_or_three_shards_of_any_sizes(seed, rows, where, alpha, significance, depth, warmup, memory, few):
    specification, values, contours = sharded_rows(
        seed,
        rows,
        alpha=alpha,
        split_significance=significance,
        max_depth=depth,
        warmup_rows=warmup,
        memory_rows=memory,
    )
    whole = grow(GrowthState.initial(specification), [Observed(values, contours)]).unpruned_tree
    bounds = [0, *sorted(int(share * rows) for share in where), rows]
    parts = [partial(given_rows, values[a:b], contours[a:b]) for a, b in pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        if few:
            patch.setattr(shard, "MAX_ENTRIES", 3_000)  # nodes of a level are decided in several lots
        assert_same_trees(whole, grow_sharded(specification, parts))


def test_the_last_labelled_rows_are_remembered_wherever_they_lie():
    """The memory ends within a shard, at its first row and behind it; values and contours are forgotten too."""
    _, _, contours = sharded_rows(1)
    labelled = (contours != contours[:, :1]).any(axis=1)
    in_last_half = int(labelled[300:].sum())
    for memory in (1, in_last_half - 1, in_last_half, in_last_half + 1, int(labelled.sum()) - 1):
        specification, values, contours = sharded_rows(1, memory_rows=memory)
        values[:100, 3] = 5.0  # a learned value and a contour of the first rows alone
        contours[:100][labelled[:100]] = [1.0, 0.25, 0.0]
        whole = grow(GrowthState.initial(specification), [Observed(values, contours)]).unpruned_tree
        assert_same_trees(whole, grow_sharded(specification, deal(values, contours, 2)))


def test_empty_shards_change_nothing():
    specification, values, contours = sharded_rows(1)
    whole = grow(GrowthState.initial(specification), [Observed(values, contours)]).unpruned_tree
    none = partial(given_rows, values[:0], contours[:0])
    assert_same_trees(whole, grow_sharded(specification, [none, *deal(values, contours, 2), none]))
    empty = GrowthState.initial(specification).unpruned_tree
    assert_same_trees(empty, grow_sharded(specification, [none, none]))


def test_what_cannot_be_sharded():
    specification, values, contours = sharded_rows(1, pruning=Pruning("likelihood"))
    with pytest.raises(InvalidInput, match=r"pruning: is Pruning.*, must be None"):
        grow_sharded(specification, deal(values, contours, 2))
    with pytest.raises(InvalidInput, match="shards: are 0, must be 1 to 1024"):
        grow_sharded(specification, [])
    specification, values, contours = sharded_rows(1)
    values = np.where(values == 2, -1.0, values)
    with pytest.raises(InvalidInput, match="values"):
        grow_sharded(specification, deal(values, contours, 2))
