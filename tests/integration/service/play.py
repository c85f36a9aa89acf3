"""Playing a problem through the service, and comparing it with the offline algorithm."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import numpy as np
import pytest
from integration.service.problems import Answer, Problem

from quercus.client import Client, Query, Tree
from quercus.trees.ask.query import Query as OfflineQuery
from quercus.trees.tree.node import Node

CLOSE = {"rel": 0, "abs": 1e-9}


def push_one_by_one(client: Client, model: str, problem: Problem) -> None:
    for i, name in enumerate(problem.ids):
        labels = None if problem.labels is None else problem.labels[i : i + 1]
        client.push(model, problem.rows[i : i + 1], labels, [name])


def push_in_batches(client: Client, model: str, problem: Problem) -> None:
    client.push(model, problem.rows, problem.labels, problem.ids, batch_rows=7)


def push_in_one_piece(client: Client, model: str, problem: Problem) -> None:
    client.push(model, problem.rows, problem.labels, problem.ids)


PUSHES = {"one by one": push_one_by_one, "batches": push_in_batches, "one piece": push_in_one_piece}


def answered(
    client: Client, model: str, oracle: Callable[[int], Answer], limit: int | None = None
) -> Iterator[Query]:
    """Answers or refuses one query after another, yielding each after that; ends when there is none."""
    with closing(client.queries(model, "ann", idle_s=0.5)) as queries:
        for count, query in enumerate(queries, 1):
            settle(client, query, oracle)
            yield query
            if count == limit:
                return


def settle(client: Client, query: Query, oracle: Callable[[int], Answer]) -> None:
    answer = oracle(row_of(query))
    if answer is None:
        client.refuse(query)
    elif set(np.unique(answer)) <= {0.0, 1.0}:
        client.answer(query, {name for name, value in zip(query.classes, answer, strict=True) if value})
    else:
        client.answer(query, dict(zip(query.classes, answer.tolist(), strict=True)))


def row_of(query: Query) -> int:
    return int(query.instance.removeprefix("row-"))


def assert_same_queries(asked: Iterable[Query], wanted: Iterable[OfflineQuery], problem: Problem) -> None:
    """The same rows for the same reasons, in the same order."""
    for query, offline in zip(asked, wanted, strict=True):
        reason = query.reason
        assert row_of(query) == offline.instance
        assert reason.path == tuple(problem.step(*step) for step in offline.path)
        assert (reason.attribute, reason.value) == problem.step(offline.attribute, offline.code)
        assert reason.node_count == offline.node_count
        assert reason.score == pytest.approx(offline.score, **CLOSE)
        assert [rival.attribute for rival in reason.rivals] == [
            problem.names[k] for k, _, _ in offline.rivals
        ]
        ends = [(rival.lower, rival.upper) for rival in reason.rivals]
        assert ends == [pytest.approx((lo, hi), **CLOSE) for _, lo, hi in offline.rivals]


def assert_same_tree(tree: Tree, root: Node, problem: Problem) -> None:
    """Node for node, every number within 1e-9."""
    offline = list(root.preorder())
    assert len(tree.nodes) == len(offline)
    for node, (wanted, parent, code) in zip(tree.nodes, offline, strict=True):
        assert node.parent == (None if parent < 0 else parent)
        above = None if parent < 0 else offline[parent][0].attribute
        assert node.branch == (None if above is None else problem.branches[above][code])
        assert node.attribute == (None if wanted.attribute is None else problem.names[wanted.attribute])
        assert node.class_name == problem.specification.classes[wanted.klass]
        assert (node.count, node.undecided) == (wanted.count, wanted.undecided)
        assert node.stop == (None if wanted.stop is None else wanted.stop.name.lower())
        for values, others in (
            (node.theta, wanted.theta),
            (node.belief, wanted.belief),
            (node.plausibility, wanted.plausibility),
        ):
            assert values == pytest.approx(others, **CLOSE)
        assert list(node.intervals) == [problem.names[k] for k in sorted(wanted.intervals)]
        for k, ends in wanted.intervals.items():
            assert node.intervals[problem.names[k]] == pytest.approx(ends, **CLOSE)
