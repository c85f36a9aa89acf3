"""Results in a notebook are small tables whose names and values are text, whoever wrote them."""

from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from quercus.client import Classifications, Numeric, Specification
from quercus.client.notebooks import MOST_ROWS
from quercus.client.results import Model, Query, Reason, Tree
from quercus.client.tree_nodes import TreeNode

HOSTILE = "</td><script src=//x>alert(1)</script>\"'<img onerror=x>&amp;\u202e$\\href{javascript:x}{y}$"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Tables(HTMLParser):
    """The text of the cells of each table, by row; fails at all that is not a plain table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.captions: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert {name for name, _ in attrs} <= {"class", "scope", "colspan"}
        if tag == "table":
            assert dict(attrs)["class"] == "tex2jax_ignore mathjax_ignore"
        elif tag == "caption":
            self.captions.append("")
        elif tag == "tr":
            self.rows.append([])
        elif tag in {"th", "td"}:
            self.rows[-1].append("")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] == "caption":
            self.captions[-1] += data
        else:
            assert self._open[-1] in {"th", "td"}
            self.rows[-1][-1] += data


def model(name: str = "wine", classes: tuple[str, ...] = ("a", "b")) -> Model:
    definition = Specification([Numeric("x")], classes, budget=20, learner="abc45")
    return Model(name, definition, NOW, 1200, 1180, tree_version=3, instance_count=1178, queries_answered=7)


def query(name: str = "sun", value: Any = 2.5) -> Query:
    return Query("models/m/queries/4", "m", 4, "leased", name, {name: value}, (1.0, 0.25), (name, "b"), Reason(()),
                 lease_token="secret")  # fmt: skip


def node(index: int, parent: int | None, name: str = "a", **given: Any) -> TreeNode:
    fields = {
        "depth": 0 if parent is None else 1,
        "branch": None if parent is None else "< 2",
        "attribute": None,
    }
    fields |= {"children": (), "undecided": False} | given
    return TreeNode(index=index, parent=parent, class_name=name, count=1500, theta=(0.75, 0.25), belief=(0.5, 0.0),
                    plausibility=(1.0, 0.5), intervals={}, stop=None, **fields)  # fmt: skip


def tree(*nodes: TreeNode, classes: tuple[str, ...] = ("a", "b")) -> Tree:
    return Tree("wine", 3, 1180, classes, (), nodes, NOW)


def predictions(n: int = 2, classes: tuple[str, ...] = ("a", "b")) -> Classifications:
    theta = np.tile([0.75, 0.25], (n, 1))
    masks = np.full(n, 3, dtype=np.uint64)
    one = np.zeros(n, dtype=np.int64)
    return Classifications(
        classes, one, theta, theta, theta / 2, theta + 0.2, one, one + 3, 3, 9, class_sets=masks
    )


def shown(result: Any) -> Tables:
    return Tables(result._repr_html_())


def test_a_model_has_its_numbers() -> None:
    found = shown(model())
    assert found.captions == ["model wine"]
    assert ["rows", "1,178"] in found.rows
    assert ["answers", "7 of 20"] in found.rows
    assert ["newest tree", "version 3"] in found.rows
    assert ["events not yet in it", "20"] in found.rows
    assert ["learner", "abc45"] in found.rows


def test_a_model_without_a_budget_never_asks() -> None:
    silent = replace(model(), specification=Specification([Numeric("x")], ["a", "b"], budget=0))
    assert ["answers", "never asks"] in shown(silent).rows


def test_predictions_have_theirs() -> None:
    numbers = ["0.75", "0.75", "0.38", "0.95"]
    assert shown(predictions()).rows[1:] == [[str(row), "a", *numbers, "a|b"] for row in range(2)]
    assert shown(predictions()[0]).rows[1:] == [["a", *numbers], ["b", "0.25", "0.25", "0.12", "0.45"]]


def test_predictions_have_their_kinds_of_doubt() -> None:
    told = replace(predictions(), overlap=np.array([0.5, 0.0]), ignorance=np.array([0.31, 0.81]))
    assert [row[-2:] for row in shown(told).rows] == [
        ["overlap", "ignorance"],
        ["0.50", "0.31"],
        ["0.00", "0.81"],
    ]
    (caption,) = shown(told[0]).captions
    assert caption.endswith("; doubt in bits: overlap 0.50, ignorance 0.31")


def test_a_query_shows_its_row_and_not_the_secret_of_its_lease() -> None:
    found = shown(query())
    assert found.captions == ["query 4 of m, leased: row sun", "known of its class"]
    assert found.rows == [
        ["attribute", "value"],
        ["sun", "2.5"],
        ["class", "plausibility"],
        ["sun", "1.00"],
        ["b", "0.25"],
    ]
    assert "secret" not in query()._repr_html_()


def test_a_tree_has_a_line_for_each_node() -> None:
    root = node(0, None, attribute="size", children=(1, 2), undecided=True)
    found = shown(tree(root, node(1, 0), node(2, 0, "b")))
    assert found.rows[0] == ["branch", "class", "rows", "a", "b", "split", "state"]
    assert found.rows[1][1:] == ["a", "1,500", "0.75", "0.25", "by size", "undecided"]
    assert found.rows[2] == ["└ < 2", "a", "1,500", "0.75", "0.25", "", ""]


@pytest.mark.parametrize(
    "result",
    [
        model(HOSTILE, (HOSTILE, "b")),
        predictions(classes=(HOSTILE, "b")),
        predictions(classes=(HOSTILE, "b"))[0],
        query(HOSTILE, HOSTILE),
        query(HOSTILE, frozenset({HOSTILE, "b"})),
        tree(
            node(0, None, HOSTILE, attribute=HOSTILE),
            node(1, 0, HOSTILE, branch=HOSTILE),
            classes=(HOSTILE, "b"),
        ),
    ],
    ids=lambda result: type(result).__name__,
)
def test_hostile_names_are_text(result: Any) -> None:
    html = result._repr_html_()
    texts = [text for row in shown(result).rows for text in row] + shown(result).captions
    assert any("<script src=//x>" in text for text in texts)
    assert "\u202e" not in html
    assert "://" not in html


def test_much_is_cut_short_and_says_so() -> None:
    assert shown(predictions(1000)).rows[-1] == ["… 970 more"]
    assert len(shown(predictions(1000)).rows) == 1 + MOST_ROWS + 1
    nodes = [node(0, None, attribute="x"), *(node(k, 0) for k in range(1, 500))]
    assert shown(tree(*nodes)).rows[-1] == ["… 470 more"]
    assert len(query("x" * 10_000)._repr_html_()) < 2000
