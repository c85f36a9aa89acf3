"""Numbers on a screen that are large and close to each other, such as times: they stay apart."""

import pytest

from quercus.client import Specification, Tree
from quercus.client.comparing import differences
from quercus.client.results import Rival
from quercus.specification.attributes import Numeric, plain_number
from quercus.specification.conditions import condition_of, path_text
from quercus.trees import branch_names, split_names
from quercus.v1 import tree_pb2
from quercus.view.models import attribute_words
from quercus.view.rows import value_text

TIMES = (1700000000.5, 1700000600.5, 1700001200.5)
NONE = float("nan")


def nested(*thresholds: float) -> tree_pb2.Tree:
    """Return a tree of which each split is the branch "at least" of the one before."""
    count = 2 * len(thresholds) + 1
    inner = range(0, count - 1, 2)
    return tree_pb2.Tree(
        name="models/m/trees/1",
        classes=["o", "s"],
        attributes=[tree_pb2.AttributeBranches(attribute="time", numeric=True)],
        nodes=tree_pb2.Nodes(
            parents=[0, *(parent for parent in inner for _ in range(2))],
            branches=[0, *([0, 1] * len(thresholds))],
            attributes=[0 if node in inner else -1 for node in range(count)],
            thresholds=[thresholds[node // 2] if node in inner else NONE for node in range(count)],
            class_indices=[0] * count,
            counts=[1] * count,
            theta=[0.5] * 2 * count,
            belief=[0.0] * 2 * count,
            plausibility=[1.0] * 2 * count,
            undecided=[False] * count,
            stops=[tree_pb2.STOP_REASON_UNSPECIFIED] * count,
            interval_counts=[0] * count,
        ),
    )


@pytest.mark.parametrize("unit", [10**6, 10**9])
def test_times_in_parts_of_a_second_stay_apart(unit: int) -> None:
    tree = Tree.from_message(nested(*(1_700_000_000.0 * unit + step * 1024 for step in (0, 1))))
    first, second = 1_700_000_000 * unit, 1_700_000_000 * unit + 1024
    assert sorted(path_text(tree.path(leaf)) for leaf in tree.leaves) == [
        f"{first} ≤ time < {second}",
        f"time < {first}",
        f"time ≥ {second}",
    ]


def test_a_leaf_between_two_times_has_values() -> None:
    """Its rule was "no value of time", because both bounds were written 1.7e+09."""
    tree = Tree.from_message(nested(*TIMES))
    texts = [path_text(tree.path(leaf)) for leaf in tree.leaves]
    assert sorted(texts) == [
        "1700000000.5 ≤ time < 1700000600.5",
        "1700000600.5 ≤ time < 1700001200.5",
        "time < 1700000000.5",
        "time ≥ 1700001200.5",
    ]


def test_splits_have_the_names_that_the_client_gives_them() -> None:
    attributes, edges = [Numeric("time", cuts=3)], (TIMES,)
    named = split_names(attributes, edges, branch_names(attributes, edges))
    assert [each.branches[:2] for each in named] == [(f"< {x}", f"≥ {x}") for x in TIMES]
    assert Rival("time", 0.0, 1.0, TIMES[0]).name == "time < 1700000000.5"


def test_bins_that_are_close_keep_their_bounds() -> None:
    (names,) = branch_names([Numeric("time", bins=4)], (TIMES,))
    texts = [condition_of("time", name).text for name in names[:-1]]
    assert texts == [
        "time < 1700000000",
        "1700000000 ≤ time < 1700000600",
        "1700000600 ≤ time < 1700001200",
        "time ≥ 1700001200",
    ]


def test_declared_edges_are_shown_apart() -> None:
    kind, values = attribute_words(Numeric("day", edges=(20231101, 20231115)))
    assert (kind, values) == ("numbers", "cut at 20231101, 20231115")
    few, many = (Specification([Numeric("x")], ["o", "s"], budget=each) for each in (10, 1_000_000))
    assert differences(many, few) == ["budget 1000000, given 10"]


def test_a_labeller_sees_the_day_of_a_date() -> None:
    assert value_text(20231101.0) == "20231101"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (13.255, "13.255"),
        (0.12345678, "0.123457"),
        (-20231101.5, "-20231101.5"),
        (1e300, "1e+300"),
        (0.0, "0"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert plain_number(value) == text
