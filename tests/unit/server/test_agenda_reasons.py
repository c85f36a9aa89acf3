"""The reason of a query if numbers are split at thresholds."""

import numpy as np
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.server.wire.agenda import MAX_RIVALS, decode_asked, encode_asked, encode_reasons
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.ask.query import Query, QueryPosition
from quercus.trees.growth.stream import GrowthState, Observed, grow
from quercus.trees.tree.encoding import split_names
from quercus.v1 import query_pb2

ATTRIBUTES = (Nominal("hue", ("red", "blue")), Numeric("size", cuts=3), Numeric("age", bins=2))


def state(seed: int) -> GrowthState:
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, 2, 40), rng.normal(10, 3, 40), rng.normal(size=40)])
    klass = (values[:, 1] > 10) ^ (
        rng.random(40) < 0.3
    )  # so uncertain that more than one attribute may be the best
    contours = np.where(rng.random((40, 1)) < 0.4, 1.0, np.eye(2)[klass.astype(int)])
    spec = published_tree(ATTRIBUTES, Frame(("p", "q")), alpha=0.9, budget=50, strategy="published")
    return grow(GrowthState.initial(spec), [Observed(values, contours)])


def reason_of(query: Query, state: GrowthState) -> query_pb2.Reason:
    splits = split_names(ATTRIBUTES, state.edges, state.branch_names)
    return query_pb2.Reason.FromString(encode_reasons([query], splits, "published")[0])


def condition(reason: query_pb2.Reason) -> str:
    if reason.value == "?":
        return f"{reason.attribute} is missing"
    return f"{reason.attribute}{' = ' if reason.attribute == 'hue' else ' '}{reason.value}"


def test_tests_are_named_by_attribute_and_threshold() -> None:
    seen = set()
    for grown in (state(5), state(6), state(7)):
        cuts, queries = grown.edges[1], grown.agenda(50)
        for query in queries:
            reason = reason_of(query, grown)
            for rival, (split, lower, upper) in zip(reason.rivals, query.rivals, strict=True):
                assert (rival.lower, rival.upper) == (lower, upper)
                if 1 <= split <= len(cuts):
                    assert (rival.attribute, rival.threshold) == ("size", cuts[split - 1])
                    seen.add(rival.threshold)
                else:
                    assert (rival.attribute, rival.HasField("threshold")) == (
                        "hue" if split == 0 else "age",
                        False,
                    )
            steps = [*reason.path, reason]
            for (split, code), step in zip([*query.path, (query.attribute, query.code)], steps, strict=True):
                if 1 <= split <= len(cuts):
                    assert step.value == (f"< {cuts[split - 1]:.6g}", f"≥ {cuts[split - 1]:.6g}", "?")[code]
            assert reason.sentence == f"This label tells most about the rows where {condition(reason)}."
            assert decode_asked(encode_asked(query.asked)) == query.asked
    assert len(seen) > 1


def test_of_many_rivals_the_most_promising_are_named() -> None:
    rivals = tuple((k, -1.0, float(k % 150)) for k in range(300))
    query = Query(0, (), 0, 0, 1.0, rivals, QueryPosition((), 0, 0, tuple(range(300))), 9)
    many = tuple(Nominal(f"a{k}", ("x",)) for k in range(300))
    reason = query_pb2.Reason.FromString(
        encode_reasons([query], split_names(many, ((),) * 300, (("x", "?"),) * 300), "published")[0]
    )
    assert len(reason.rivals) == MAX_RIVALS
    assert min(rival.upper for rival in reason.rivals) == 100.0
    assert [int(rival.attribute[1:]) for rival in reason.rivals] == [*range(100, 150), *range(250, 300)]
