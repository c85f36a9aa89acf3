"""The live picture fits 80 columns, whatever the tree; its lines say what moved."""

import io
from datetime import UTC, datetime

from rich.console import Console

from quercus.client.results import Model, Tree, TreeUpdate
from quercus.client.specifications import Specification
from quercus.client.tree_nodes import TreeNode
from quercus.specification.attributes import Numeric
from quercus.view.terminal.watch import DRAWN_BRANCHES, MAX_MOMENTS, WatchedMoment, watch_picture


def node(index: int, parent: int | None, depth: int, children: tuple[int, ...] = ()) -> TreeNode:
    return TreeNode(
        index,
        parent,
        depth,
        None if parent is None else f"< {index}.5",
        "a very long name of an attribute indeed" if children else None,
        f"class-{index}",
        10 * index + 1,
        (0.75, 0.25),
        (0.7, 0.2),
        (0.8, 0.3),
        {},
        bool(children),
        None,
        children,
    )


def moment(seconds: float, nodes: tuple[TreeNode, ...], answered: int, budget: int = 40) -> WatchedMoment:
    tree = Tree("wine", 7, 100, ("red", "white"), (), nodes, datetime.now(UTC))
    model = Model(
        name="wine",
        specification=Specification([Numeric("a")], ["red", "white"], budget=budget),
        created_at=datetime.now(UTC),
        sequence_committed=100,
        sequence_grown=100,
        tree_version=7,
        instance_count=1234,
        queries_answered=answered,
        queries_leased=1,
        queries_refused=2,
        queries_open=5,
        conflicts=0,
    )
    return WatchedMoment(seconds, TreeUpdate(tree, 100), model)


def drawn(moments: list[WatchedMoment]) -> list[str]:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(watch_picture(moments))
    return console.export_text().splitlines()


DEEP = (node(0, None, 0, (1, 2)), node(1, 0, 1, (3,)), node(2, 0, 1), node(3, 1, 2, (4,)), node(4, 3, 3))


def test_a_model_that_never_asks_has_no_bar_of_answers() -> None:
    lines = drawn([moment(0.0, DEEP, 0, budget=0)])
    assert "answers   never asks, 2 refused" in [line.rstrip() for line in lines]


def test_numbers_and_the_top_of_the_tree() -> None:
    lines = drawn([moment(0.0, DEEP[:1], 0), moment(2.5, DEEP, 20)])
    text = "\n".join(line.rstrip() for line in lines)
    assert max(map(len, lines)) <= 80
    assert "20 of 40" in text
    assert "2 trees in 2.5 s" in text
    assert [line.split() for line in lines if line.startswith("answers ") and "▁█" in line] == [
        ["answers", "20", "▁█"]
    ]
    assert "class-3" in text
    assert "class-4" not in text  # below what is drawn
    assert "class-3  n=31  (red 0.75  white 0.25)  by a very long name of an…" in text  # cut


def test_many_branches_are_counted() -> None:
    wide = (node(0, None, 0, tuple(range(1, 12))), *(node(k, 0, 1) for k in range(1, 12)))
    text = "\n".join(drawn([moment(0.0, wide, 1)]))
    assert sum("n=" in line for line in text.splitlines()) == 1 + DRAWN_BRANCHES
    assert "class-11" not in text


def test_a_line_of_many_trees_fits() -> None:
    lines = drawn([moment(float(k), DEEP, k) for k in range(MAX_MOMENTS)])
    assert max(map(len, lines)) <= 80
    assert any(len(line.split()[-1]) == MAX_MOMENTS for line in lines if line.startswith("answers"))
