"""The service is the algorithm: a labeller who answers one query at a time is asked what the offline algorithm asks."""

from typing import Any

import numpy as np
import pytest
from support.plain_rules import non_dominated

from quercus.trees.growth.abc45 import induce
from quercus.trees.tree.flat import FlatTree
from quercus.v1 import values_pb2

ROWS, ARITIES, CLASSES, BUDGET, ALPHA = 60, (3, 2, 4), 3, 20, 0.9
FRAME = ["o", "s", "x"]


def data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, contours (a third vacuous, a third sets, a third precise), truth."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, arity, ROWS) for arity in ARITIES])
    truth = np.where(
        rng.random(ROWS) < 0.8, (codes[:, 0] + codes[:, 1]) % CLASSES, rng.integers(0, CLASSES, ROWS)
    )
    contours = np.eye(CLASSES)[truth]
    kind = rng.integers(0, 3, ROWS)
    contours[kind == 0] = 1.0
    contours[np.flatnonzero(kind == 1), (truth[kind == 1] + 1) % CLASSES] = 1.0
    return codes, contours, truth


@pytest.mark.parametrize(("seed", "batch_rows"), [(1, 60), (2, 7), (3, 1)])
def test_queries_and_tree(seed: int, batch_rows: int, api: Any, tools: Any) -> None:
    codes, contours, truth = data(seed)
    refused = {int(row) for row in np.random.default_rng(seed).permutation(ROWS)[:6]}
    model = f"offline{seed}"
    attributes = [tools.nominal(f"A{k}", [f"v{i}" for i in range(arity)]) for k, arity in enumerate(ARITIES)]
    api.create(model, attributes=attributes, alpha=ALPHA, budget=BUDGET)
    requests = []
    for start in range(0, ROWS, batch_rows):
        part = slice(start, start + batch_rows)
        labels = values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=contours[part].ravel()))
        ids = [f"row{i}" for i in range(ROWS)[part]]
        requests.append(tools.batch(model, codes[part], labels=labels, ids=ids))
    api.push(*requests)

    def oracle(row: int) -> np.ndarray | None:
        return None if row in refused else np.eye(CLASSES)[truth[row]]

    offline = induce(codes, ARITIES, contours, alpha=ALPHA, budget=BUDGET, oracle=oracle)
    asked = []
    while True:
        api.grown(model, api.get(model).sequence_committed)
        queries = api.lease(model, wait_s=0).queries
        if not queries:
            break
        (query,) = queries
        row = int(query.instance.rpartition("/row")[2])
        asked.append(
            (row, query.reason.attribute, query.reason.value, len(query.reason.path), query.reason.score)
        )
        if row in refused:
            api.refuse(query)
        else:
            api.answer(query, label=values_pb2.Label(class_name=FRAME[truth[row]]))
    wanted = [(q.instance, f"A{q.attribute}", f"v{q.code}", len(q.path), q.score) for q in offline.queries]
    assert [each[:4] for each in asked] == [each[:4] for each in wanted]
    assert [each[4] for each in asked] == pytest.approx([each[4] for each in wanted])
    assert len(asked) > 5

    flat = FlatTree.of(offline.tree)
    nodes = api.grown(model, api.get(model).sequence_committed).nodes
    assert list(nodes.parents) == flat.parent.tolist()
    assert list(nodes.attributes) == flat.attribute.tolist()
    assert list(nodes.class_indices) == flat.klass.tolist()
    assert list(nodes.counts) == flat.count.tolist()
    assert list(nodes.theta) == pytest.approx(flat.theta.ravel().tolist())
    assert list(nodes.interval_counts) == np.diff(flat.interval_start).tolist()
    assert list(nodes.interval_attributes) == flat.interval_attribute.tolist()
    assert_intervals(np.array(nodes.interval_lowers), np.array(nodes.interval_uppers), flat)


def assert_intervals(lower: np.ndarray, upper: np.ndarray, flat: FlatTree) -> None:
    """Those of rivals are exact; those of dominated attributes may be outer bounds, and still show them dominated."""
    rivals = 0
    for node in range(flat.size):
        part = slice(flat.interval_start[node], flat.interval_start[node + 1])
        exact = {k: ends for k, *ends in flat.intervals(node)}
        published = dict(zip(exact, zip(lower[part], upper[part], strict=True), strict=True))
        assert non_dominated(published) == non_dominated(exact)
        for k, (least, most) in exact.items():
            if k in non_dominated(exact):
                rivals += 1
                assert published[k] == pytest.approx((least, most))
            else:
                assert published[k][0] <= least + 1e-9
                assert published[k][1] >= most - 1e-9
    assert rivals > 0
