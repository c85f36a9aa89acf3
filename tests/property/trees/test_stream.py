"""The service's fold: a pure function of the log, however the log was cut, and the same as `induce`."""

from dataclasses import replace

import numpy as np
import pytest
from property.trees.problems import Problem, problem
from sklearn.datasets import load_iris, load_wine
from support.plain_rules import non_dominated
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.trees.ask.query import Query
from quercus.trees.growth.abc45 import induce
from quercus.trees.growth.stream import Answered, Event, GrowthState, Observed, Refused, Respecified, grow
from quercus.trees.tree.encoding import Encoder, edges_in_force
from quercus.trees.tree.node import Node

SEEDS = range(25)


def specification(given: Problem) -> Specification:
    return published_tree(
        attributes=tuple(
            Nominal(f"a{k}", tuple(f"v{i}" for i in range(arity)), "reject")
            for k, arity in enumerate(given.arities)
        ),
        frame=Frame(tuple(f"c{j}" for j in range(given.contours.shape[1]))),
        alpha=given.alpha,
        budget=given.budget,
        min_instances=given.min_instances,
        max_depth=given.max_depth,
        strategy="published",
    )


def observed(given: Problem, rows: slice = slice(None)) -> Observed:
    return Observed(given.codes[rows].astype(float), given.contours[rows])


def reply(query: Query, answer: object) -> Event:
    if answer is None:
        return Refused(query.instance, query.asked)
    return Answered(query.instance, np.array(answer), 1.0, query.asked)


def converse(state: GrowthState, oracle: object) -> tuple[GrowthState, list[Query], list[Event]]:
    """One labeller, one query at a time."""
    queries: list[Query] = []
    replies: list[Event] = []
    while wanted := state.agenda(1):
        queries.append(wanted[0])
        replies.append(reply(wanted[0], oracle(wanted[0].instance)))
        state = grow(state, [replies[-1]])
    return state, queries, replies


def shape(tree: Node) -> list[tuple]:
    """All of a tree but what depends on who may still be asked."""
    return [(parent, code, n.attribute, n.klass, n.count, n.stop) for n, parent, code in tree.preorder()]


def assert_same(grown: Node, exact: Node) -> None:
    """The same tree, but that what is dominated may be known by outer bounds alone."""
    assert shape(grown) == shape(exact)
    for (a, _, _), (b, _, _) in zip(grown.preorder(), exact.preorder(), strict=True):
        assert (a.theta, a.belief, a.plausibility, a.undecided) == (
            b.theta,
            b.belief,
            b.plausibility,
            b.undecided,
        )
        assert list(a.intervals) == list(b.intervals)
        rivals = non_dominated(b.intervals)
        assert non_dominated(a.intervals) == rivals
        for k, (lower, upper) in b.intervals.items():
            if k in rivals:
                assert a.intervals[k] == pytest.approx((lower, upper), abs=1e-12)
            else:
                assert a.intervals[k][0] <= lower + 1e-12
                assert a.intervals[k][1] >= upper - 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_the_service_asks_what_induce_asks(seed: int) -> None:
    given = problem(seed)
    state = grow(GrowthState.initial(specification(given)), [observed(given)])
    state, queries, _ = converse(state, given.oracle)
    result = induce(given.codes, given.arities, given.contours, oracle=given.oracle, **given.settings)
    assert tuple(queries) == result.queries
    assert_same(state.tree, result.tree)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    given = problem(seed)
    order = np.random.default_rng(seed).permutation(len(given.codes))
    settings = {**given.settings, "budget": 0}
    one = induce(given.codes, given.arities, given.contours, **settings).tree
    other = induce(given.codes[order], given.arities, given.contours[order], **settings).tree
    assert shape(one) == shape(other)
    for (a, _, _), (b, _, _) in zip(one.preorder(), other.preorder(), strict=True):
        assert a.theta == pytest.approx(b.theta, abs=1e-9)
        assert a.undecided == b.undecided


@pytest.mark.parametrize("seed", SEEDS)
def test_the_agenda_is_what_refusals_would_reveal(seed: int) -> None:
    given = problem(seed)
    spec = specification(given)
    state = grow(GrowthState.initial(spec), [observed(given), Respecified(_with_budget(spec, 1000))])
    listed = state.agenda(100)
    assert [state.agenda(k) for k in range(4)] == [listed[:k] for k in range(4)]
    state, queries, _ = converse(state, lambda _: None)
    assert [q.asked for q in listed] == [q.asked for q in queries]
    assert [q.instance for q in listed] == [q.instance for q in queries]
    assert len({q.instance for q in queries}) == len(queries)
    assert not any(node.undecided for node, _, _ in state.tree.preorder())


def _with_budget(spec: Specification, budget: int) -> Specification:
    return replace(spec, budget=budget)


@pytest.mark.parametrize(("load", "budget"), [(load_wine, 31), (load_iris, 26)])
@pytest.mark.parametrize("batch", [1, 17, 1000])
def test_real_data(load: object, budget: int, batch: int) -> None:
    data = load()
    rows = np.random.default_rng(7).permutation(len(data.target))[: int(0.7 * len(data.target))]
    values, truth = data.data[rows], data.target[rows]
    spec = published_tree(
        tuple(Numeric(name) for name in data.feature_names),
        Frame(("a", "b", "c")),
        budget=budget,
        strategy="published",
    )
    vacuous = np.ones((len(rows), 3))
    state = GrowthState.initial(spec)
    for start in range(0, len(rows), batch):
        part = slice(start, start + batch)
        state = grow(state, [Observed(values[part], vacuous[part])])
    codes = Encoder(spec.attributes, edges_in_force(spec, values)).codes(values)
    state, queries, _ = converse(state, lambda i: np.eye(3)[truth[i]])
    result = induce(codes, [5] * codes.shape[1], vacuous, budget=budget, oracle=lambda i: np.eye(3)[truth[i]])
    assert len(queries) == budget
    assert tuple(queries) == result.queries
    assert_same(state.tree, result.tree)


@pytest.mark.parametrize("seed", range(15))
def test_batches_do_not_matter_while_bins_move_and_values_are_learned(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, truth = 30, rng.integers(0, 2, 30)
    spec = published_tree(
        (Numeric("x", 3), Numeric("y", edges=(0.5,)), Nominal("z", ("p",))),
        Frame(("a", "b")),
        budget=12,
        warmup_rows=int(rng.integers(1, 20)),
        strategy="published",
    )
    values = np.column_stack([rng.normal(truth, 1), rng.random(n), rng.integers(0, 4, n)])
    values[rng.random(values.shape) < 0.2] = np.nan
    pushes = [Observed(values[i : i + 1], rng.choice([0.3, 1.0], (1, 2))) for i in range(n)]
    state, log = GrowthState.initial(spec), []
    for push in pushes:  # one labeller keeps up with the rows as they come
        log.append(push)
        state = grow(state, [push])
        for query in state.agenda(1):
            log.append(reply(query, None if rng.random() < 0.3 else np.eye(2)[truth[query.instance]]))
            state = grow(state, log[-1:])
    at_once = grow(GrowthState.initial(spec), log)
    assert at_once.tree == state.tree
    assert at_once.agenda(10) == state.agenda(10)
    assert (at_once.edges, at_once.branch_names) == (state.edges, state.branch_names)
    codes = state.encoder.codes(values)
    assert (codes == state.evidence.codes).all()
    plain = induce(codes, state.evidence.arities, [state.contour(i) for i in range(n)], alpha=spec.alpha).tree
    assert shape(plain) == shape(state.tree)
