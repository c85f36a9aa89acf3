"""The models that `torture` strikes, and what each must be in the end: what its evidence gives without a kill."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from quercus.belief.frame import Frame
from quercus.client import Client, Nominal, Specification
from quercus.server.growth.engines import tree_engine
from quercus.server.wire.models import specification_of
from quercus.specification.model import Specification as ModelSpecification
from quercus.storage import Store
from quercus.trees import C45, Forest
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.learner import fit
from quercus.trees.learners.table import Table
from quercus.trees.tree.encoding import Encoder
from support.published import published_model

TREE: Final = "tree"
RELEARNED: Final = "relearned"
REMEMBERING: Final = "remembering"
MODELS: Final = (TREE, RELEARNED, REMEMBERING)
ASKED: Final = (TREE, REMEMBERING)
"""Models that labellers answer."""

TREES: Final = 20
VALUES: Final = ("a", "b", "c")
CLASSES: Final = ("o", "s", "x")
ATTRIBUTES: Final = 4
BATCH_ROWS: Final = 5
ALPHA: Final = 0.9
MIN_INSTANCES: Final = 20
LEARNED: Final = tuple(Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES))


def specifications(budget: int) -> dict[str, Specification]:
    """Return what is learned, by model."""
    settings = {"alpha": ALPHA, "budget": budget, "min_instances": MIN_INSTANCES, "strategy": "published"}
    again = {"name": "forest", "base": "c45", "trees": TREES}
    return {
        TREE: published_model(list(LEARNED), CLASSES, **settings),
        RELEARNED: published_model(list(LEARNED), CLASSES, learner=again),
        REMEMBERING: Specification(list(LEARNED), CLASSES, budget=budget),
    }


def truth(row: np.ndarray) -> int:
    """The class of a row of codes, which labellers know."""
    return int((row[0] + 2 * row[1] * row[2]) % 3)


def codes_of(values: Any) -> np.ndarray:
    """Return the codes of the values of a row by name."""
    return np.array([VALUES.index(str(values[f"x{k}"])) for k in range(ATTRIBUTES)])


def check_rows(client: Client, model: str, pushed: list[str]) -> list[Any]:
    """Check that every acknowledged row is stored once; return all rows."""
    instances = list(client.instances(model))
    ids = Counter(instance.id for instance in instances)
    assert max(ids.values()) == 1, "a row is stored twice"
    assert set(pushed) <= set(ids), f"an acknowledged row of {model} is gone"
    return instances


def check_answers(client: Client, model: str, answered: dict[str, tuple[str, int]], budget: int) -> None:
    """Check that every answer is stored under its labeller, that no row has two, and that the budget holds."""
    said = {answer.number: answer for answer in client.answers(model) if answer.kind == "answered"}
    mine = {name: told for name, told in answered.items() if name.startswith(f"models/{model}/")}
    for name, (labeller, sequence) in mine.items():
        assert said[sequence].labeller == labeller, f"{name}: the answer {sequence} is not there"
    assert len({sequence for _, sequence in mine.values()}) == len(mine)
    assert len(said) == client.get_model(model).queries_answered <= budget
    assert max(Counter(answer.instance for answer in said.values()).values(), default=0) <= 1


def check_statements(client: Client, model: str, stated: list[tuple[str, str, str]]) -> None:
    """Check that every acknowledged statement is stored, and none twice."""
    found = [answer for answer in client.answers(model) if answer.kind == "stated"]
    there = Counter((answer.instance, answer.comment) for answer in found)
    assert max(there.values(), default=0) <= 1, "a statement is stored twice"
    mine = {(name, comment) for of, name, comment in stated if of == model}
    assert mine <= set(there), "an acknowledged statement is gone"


def check_tree(client: Client, instances: list[Any]) -> None:
    """Check that the active tree is that of batch induction."""
    values = np.array([codes_of(instance.values) for instance in instances])
    contours = np.array([instance.contour for instance in instances])
    spec = ModelSpecification(LEARNED, Frame(CLASSES))
    codes = Encoder(spec.attributes, ((),) * ATTRIBUTES).codes(values.astype(float))
    grown = induce(codes, [len(VALUES) + 1] * ATTRIBUTES, contours, alpha=ALPHA, min_instances=MIN_INSTANCES)
    wanted = list(grown.tree.preorder())
    tree = client.tree(TREE)
    assert len(tree.nodes) == len(wanted)
    for node, (other, parent, _) in zip(tree.nodes, wanted, strict=True):
        assert node.parent == (None if parent < 0 else parent)
        assert node.attribute == (None if other.attribute is None else f"x{other.attribute}")
        assert (node.class_name, node.count) == (CLASSES[other.klass], other.count)
        np.testing.assert_allclose(node.theta, other.theta, atol=1e-9)
        np.testing.assert_allclose(node.belief, other.belief, atol=1e-6)


def check_relearned(client: Client, instances: list[Any]) -> None:
    """The forest that learns again is the one that is learned offline."""
    values = np.array([codes_of(instance.values) for instance in instances], dtype=float)
    contours = np.array([instance.contour for instance in instances])
    learned = fit(Forest(C45(), trees=TREES), Table.of_contours(values, LEARNED, contours))
    some = slice(0, 200)
    rows = [[instance.values[f"x{k}"] for k in range(ATTRIBUTES)] for instance in instances[some]]
    served = client.classify(RELEARNED, rows)
    assert served.theta.tolist() == learned.predict(values[some]).theta.tolist()


def check_remembering(url: str) -> None:
    """The stored forest of many memories is, to the byte, the one that is grown of the whole log at once."""
    with Store.open(url) as store:
        newest = store.snapshot(REMEMBERING)
        record = store.get_model(REMEMBERING)
        assert newest.as_of == record.sequence_committed
        engine = tree_engine(specification_of(record.specification))
        folded = 0
        while (part := store.read_log(REMEMBERING, folded, rows=10**6, size_bytes=10**9)).parts:
            engine.fold_events(part.parts)
            folded = part.last
        grown = engine.grown_trees(store.vocabulary(REMEMBERING))
    assert grown.encode() == newest.data, "the forest is not that of its log"


def check_models(
    client: Client,
    pushed: list[str],
    answered: dict[str, tuple[str, int]],
    stated: list[tuple[str, str, str]],
    budget: int,
) -> None:
    """Hold what is served against what was acknowledged, and against what is learned without a kill.

    Parameters
    ----------
    client
        Of the server.
    pushed
        Ids of rows; the last batch of them may be of the first model alone.
    answered
        By query, who answered and the number of the answer.
    stated
        Model, row and comment.
    budget
        Of each model.
    """
    sure = {TREE: pushed}
    found = {model: check_rows(client, model, sure.get(model, pushed[:-BATCH_ROWS])) for model in MODELS}
    for model in MODELS:
        check_statements(client, model, stated)
    for model in ASKED:
        check_answers(client, model, answered, budget)
    check_tree(client, found[TREE])
    check_relearned(client, found[RELEARNED])
