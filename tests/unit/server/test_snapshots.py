"""A stored tree comes back as it was, whole or as much of it as classifying needs, and as a message."""

import dataclasses

import numpy as np
import pytest

from quercus.belief.frame import Frame
from quercus.server import snapshots
from quercus.server.convert_trees import Classifier, decode_snapshot, decode_tree, encode_head
from quercus.storage.records import Snapshot
from quercus.trees.flat import FlatTree
from quercus.trees.specification import Nominal, Numeric, Specification
from quercus.trees.tree import Node, Stop

SPECIFICATION = Specification(
    (Nominal("A", ("a", "b", "c")), Numeric("N", edges=(1.0, 2.0))), Frame(("p", "q"))
)
EDGES = ((), (1.0, 2.0))
NAMES = (("a", "b", "c", "?"), ("< 1", "[1, 2)", "≥ 2", "?"))
PEOPLE_READ = (
    "undecided",
    "stop",
    "interval_start",
    "interval_attribute",
    "interval_lower",
    "interval_upper",
)


def leaf(klass: int, theta: float, count: int, stop: Stop) -> Node:
    return Node(
        attribute=None,
        klass=klass,
        theta=(theta, 1 - theta),
        count=count,
        stop=stop,
        belief=(theta / 2, (1 - theta) / 2),
        plausibility=(1.0, 1.0),
    )


def whole() -> FlatTree:
    below = Node(
        attribute=1,
        klass=0,
        theta=(1 / 3, 2 / 3),
        count=7,
        intervals={1: (0.1, 0.7)},
        children={2: leaf(1, 0.1, 3, Stop.NO_GAIN), 3: leaf(0, 0.9, 4, Stop.FEW_INSTANCES)},
        belief=(0.25, 0.5),
        plausibility=(0.5, 0.75),
    )
    root = Node(
        attribute=0,
        klass=1,
        theta=(0.5, 0.5),
        count=2**40,
        intervals={0: (0.0, 0.3), 1: (0.2, 0.2)},
        children={0: leaf(0, 1.0, 1, Stop.PURE), 2: below},
        undecided=True,
        belief=(0.0, 0.0),
        plausibility=(1.0, 1.0),
    )
    return FlatTree.of(root)


def columns(flat: FlatTree) -> dict[str, list[object]]:
    return {each.name: getattr(flat, each.name).tolist() for each in dataclasses.fields(flat) if each.init}


TREES = {"whole": whole(), "one leaf": FlatTree.of(leaf(0, 0.5, 0, Stop.FEW_INSTANCES))}


@pytest.mark.parametrize("flat", TREES.values(), ids=TREES)
def test_every_column_comes_back(flat: FlatTree) -> None:
    data = snapshots.encode(encode_head(SPECIFICATION, EDGES, NAMES), flat)
    head, found = snapshots.read(data)
    assert (list(head.classes), list(head.attributes[1].edges)) == (["p", "q"], [1.0, 2.0])
    assert columns(found) == columns(flat)
    message = decode_snapshot("m", Snapshot(3, 9, data, 0.0))
    assert (message.name, message.version, message.as_of) == ("models/m/trees/3", 3, 9)
    assert columns(decode_tree(message)) == columns(flat)


def test_a_classifier_reads_no_more_than_it_needs() -> None:
    flat = TREES["whole"]
    data = snapshots.encode(encode_head(SPECIFICATION, EDGES, NAMES), flat)
    _, found = snapshots.read_classifier(data)
    wanted, read = columns(flat), columns(found)
    assert {k: v for k, v in read.items() if k not in PEOPLE_READ} == {
        k: v for k, v in wanted.items() if k not in PEOPLE_READ
    }
    classifier = Classifier.of(1, Snapshot(3, 9, data, 0.0), SPECIFICATION)
    answer = classifier.classify(np.array([[0, np.nan], [1, 0], [2, 2.5], [2, np.nan], [2, 0]]), True)
    assert list(answer.nodes) == [1, 0, 3, 4, 2]
    assert [[(step.attribute, step.value) for step in path.steps] for path in answer.paths] == [
        [("A", "a")],
        [],
        [("A", "c"), ("N", "≥ 2")],
        [("A", "c"), ("N", "?")],
        [("A", "c")],
    ]
    assert list(answer.class_indices) == [0, 1, 1, 0, 0]
    assert list(answer.belief) == flat.belief[[1, 0, 3, 4, 2]].ravel().tolist()


def test_a_format_of_another_version_is_refused() -> None:
    data = snapshots.encode(encode_head(SPECIFICATION, EDGES, NAMES), TREES["whole"])
    other = bytes([1]) + data[1:]
    assert (snapshots.is_current(data), snapshots.is_current(other)) == (True, False)
    for read in (snapshots.read, snapshots.read_classifier):
        with pytest.raises(snapshots.UnreadableSnapshotError, match=r"format 1; this version reads format 2"):
            read(other)
