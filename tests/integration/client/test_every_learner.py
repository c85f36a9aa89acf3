"""A model of every learner on a live server: what it serves is what is learned offline from the same evidence."""

import io
from dataclasses import fields
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from integration.client.serving import Serving
from rich.console import Console

from quercus.belief.frame import Frame
from quercus.belief.label import Label as DomainLabel
from quercus.belief.label import Masses, Plausibilities, class_set, precise, vacuous
from quercus.belief.mass import MassFunction
from quercus.client import Between, Client, InvalidArgument, Learner, Nominal, Numeric, Pruning, Specification
from quercus.client.results import Strategy, Tree
from quercus.client.tree_nodes import TreeNode
from quercus.server.growth.regrowing import regrow_model
from quercus.specification import learners
from quercus.specification.attributes import Nominal as DomainNominal
from quercus.specification.attributes import Numeric as DomainNumeric
from quercus.specification.model import Specification as DomainSpecification
from quercus.storage import Store
from quercus.trees import (
    C45,
    Abc45,
    ActiveForest,
    Averaging,
    BeliefEntropy,
    E2m,
    Forest,
    Id3,
    TotalUncertainty,
)
from quercus.trees.learners.cells import Between as Range
from quercus.trees.learners.relearning import LoggedEvidence
from quercus.trees.tree.node import Node
from quercus.view.terminal.trees import DrawnTree
from quercus.view.trees.served import served_words

CLASSES = ("setosa", "versicolor", "virginica")
FRAME = Frame(CLASSES)
EDGES = (0.5, 1.5)
LEARNERS: dict[str, tuple[Any, learners.SpecifiedLearner]] = {
    "e2m": ("e2m", E2m()),
    "active forest": ({"name": "active-forest", "trees": 9}, ActiveForest(9)),
    "id3": ({"name": "id3", "max_cuts": 8, "significance": 0.05}, Id3(2, None, 8, 0.05)),
    "c45": ({"name": "c45", "confidence": 0.1}, C45(confidence=0.1)),
    "averaging": ("averaging", Averaging()),
    "total uncertainty": (
        {"name": "total-uncertainty", "combine": "mean", "folds": 3},
        TotalUncertainty(combine="mean", folds=3),
    ),
    "LBE": ("belief-entropy", BeliefEntropy("LBE", 15)),
    "IBE": ({"name": "belief-entropy", "leaf": "IBE"}, BeliefEntropy("IBE", 15)),
    "forest of masses": (
        {"name": "forest", "trees": 5, "vote": "mass", "seed": 3, "base": {"name": "averaging"}},
        Forest(Averaging(), 5, "mass", seed=3),
    ),
    "informed rows": ({"name": "e2m", "informed_only": True}, E2m(informed_only=True)),
    "forest of votes": (
        {"name": "forest", "trees": 4, "max_features": "half", "base": "c45"},
        Forest(C45(), 4, max_features="half"),
    ),
    "forest of forests a class": (
        {"name": "forest", "trees": 2, "base": {"name": "total-uncertainty", "lam": 0.7}},
        Forest(TotalUncertainty(lam=0.7), 2),
    ),
}


def evidence(count: int = 60) -> tuple[list[list[Any]], list[Any], list[DomainLabel]]:
    """Rows as a client has them, their labels as it has them, and the same in the domain."""
    rng = np.random.default_rng(0)
    rows, given, known = [], list[Any](), list[DomainLabel]()
    for i, c in enumerate(rng.integers(0, 3, count).tolist()):
        name, other = CLASSES[c], CLASSES[(c + 1) % 3]
        colour = [None, "red", "green", "blue", "grey"][1 + (c if rng.random() < 0.8 else 3)]
        rows.append([colour if i % 9 else None, None if i % 11 == 5 else round(c + rng.normal(0, 0.4), 2)])
        match i % 6:
            case 0:
                given.append(None)
                known.append(vacuous(FRAME))
            case 1:
                given.append({name, other})
                known.append(class_set(FRAME, [name, other]))
            case 2:
                given.append({name: 0.9, other: 0.3})
                plausibilities = [0.9 if x == name else 0.3 if x == other else 0.0 for x in CLASSES]
                known.append(Plausibilities(tuple(plausibilities)))
            case 3:
                given.append({frozenset({name}): 0.6, frozenset(CLASSES): 0.4})
                known.append(Masses(MassFunction.of(3, {1 << c: 0.6, 7: 0.4})))
            case _:
                given.append(name)
                known.append(precise(FRAME, name))
    return rows, given, known


COLOURS = ("red", "green")  # declared; blue and grey are learned
LEARNED = (*COLOURS, "blue", "grey")


def offline(learner: learners.SpecifiedLearner, rows: list[list[Any]], labels: list[DomainLabel]) -> Any:
    attributes = (DomainNominal("colour", COLOURS), DomainNumeric("length", edges=EDGES))
    order = list(dict.fromkeys([*COLOURS, *(row[0] for row in rows if row[0] is not None)]))
    values = [
        [np.nan if v is None else order.index(v) if k == 0 else v for k, v in enumerate(row)] for row in rows
    ]
    rules = {"min_instances": 15} if isinstance(learner, BeliefEntropy) else {}  # 5 a class
    collected = LoggedEvidence(DomainSpecification(attributes, FRAME, learner=learner, **rules))
    collected.observe(np.array(values, dtype=float), labels)
    return collected.learn_model(), order


def same(tree: Tree, root: Node) -> None:
    nodes = [node for node, _, _ in root.preorder()]
    assert len(tree.nodes) == len(nodes)
    names = [each.attribute for each in tree.attributes]
    for served, node in zip(tree.nodes, nodes, strict=True):
        assert isinstance(served, TreeNode)
        assert served.attribute == (None if node.attribute is None else names[node.attribute])
        assert (served.threshold, served.count, served.theta) == (node.threshold, node.count, node.theta)
        assert (served.belief, served.plausibility) == (node.belief, node.plausibility)
        assert (served.mass is None) == (node.mass is None)
        if node.mass is not None and served.mass is not None:
            assert tuple(served.mass.values()) == tuple(value for _, value in node.mass.focal)


def test_no_learner_is_missing() -> None:
    domain = [each for _, each in LEARNERS.values()]
    bases = [each.base for each in domain if isinstance(each, Forest)]
    elsewhere = Abc45  # which tests/integration/service/test_same_as_offline.py serves
    assert {elsewhere, *map(type, domain), *map(type, bases)} == set(learners.learner_classes().values())


@pytest.mark.parametrize("which", LEARNERS)
def test_a_model_of_every_learner(serving: Serving, client: Client, name: str, which: str) -> None:
    wire, domain = LEARNERS[which]
    attributes = [Nominal("colour", COLOURS), Numeric("length", edges=EDGES)]
    created = client.create_model(name, Specification(attributes, CLASSES, learner=wire))
    held = created.specification.learner
    assert isinstance(held, dict)
    assert held["name"] == (wire if isinstance(wire, str) else wire["name"])
    client.wait_grown(name)
    assert client.classify(name, [["red", 1.0]])[0].label_set == CLASSES  # nothing is known yet
    rows, given, known = evidence()
    client.push(name, rows[:20], given[:20])
    client.push(name, rows[20:], given[20:])
    client.wait_grown(name)
    asked: list[list[Any]] = [
        ["red", 0.1],
        [None, 1.2],
        [{"red", "blue"}, Between(0.4, 1.8)],
        [{"green", "never seen"}, None],
        ["grey", Between(-9.0, 9.0)],
        ["never seen", 2.2],
    ]
    answers = client.classify(name, asked, min_sequence=len(rows), want_masses=True)
    tree = client.tree(name)
    assert tree.learner == held["name"]
    assert (answers.belief <= answers.theta + 1e-12).all()
    assert (answers.theta <= answers.plausibility + 1e-12).all()
    if which in ("e2m", "active forest"):  # bins: the incremental engine
        assert len(tree.nodes) > 1
    else:
        model, order = offline(domain, rows, known)

        def number(colour: Any) -> Any:
            if isinstance(colour, set):
                return frozenset(float(order.index(c)) if c in order else 1000.0 for c in colour)
            return None if colour is None else order.index(colour) if colour in order else 1000

        expected = model.predict_rows(
            [[number(c), Range(x.low, x.high) if isinstance(x, Between) else x] for c, x in asked]
        )
        assert answers.indices.tolist() == expected.klass.tolist()
        for column in ("theta", "belief", "plausibility"):
            assert getattr(answers, column).tolist() == getattr(expected, column).tolist()
        assert [[c in row.label_set for c in CLASSES] for row in answers] == expected.classes.tolist()
        assert (answers.masses is None) == (expected.masses is None)
        assert len(tree.members) == len(model.trees)
        for member, root in enumerate(model.trees):
            same(client.tree(name, member=member), root)
    own, all_rows = client.get_model(name).average_confidence, client.classify(name, rows)
    assert own is not None
    assert own.rows == len(rows)
    predicted = all_rows.pignistic[np.arange(len(rows)), all_rows.indices]
    assert own.mean == pytest.approx(predicted.mean(), abs=1e-12)
    with Store.open(serving.store) as store:
        newest = store.snapshot(name)
        assert regrow_model(store, name, newest.as_of) == newest.data
    drawings(client, name, tree)
    client.delete_model(name)


def at_a_terminal(tree: Tree, depth: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=1000, force_terminal=True, color_system=None)
    console.print(DrawnTree(served_words(tree, depth)))
    return console.file.getvalue().rstrip("\n")  # type: ignore[attr-defined]


def drawings(client: Client, name: str, tree: Tree) -> None:
    text, dot, svg = (client.render(name, form) for form in ("text", "dot", "svg"))  # type: ignore[arg-type]
    assert dot.startswith("digraph")
    ET.fromstring(svg)  # noqa: S314 - our own server's
    if len(tree.members) > 1:
        assert text.startswith(f"{len(tree.members)} trees")
        text = client.render(name, "text", member=1)
        assert at_a_terminal(client.tree(name, member=1)) == text
        with pytest.raises(InvalidArgument, match="member"):
            client.render(name, "text", member=len(tree.members))
        with pytest.raises(InvalidArgument, match="want_paths"):
            client.classify(name, [["red", 1.0]], want_paths=True)
        return
    assert text.count("\n") + 1 == len(tree.nodes)
    for depth in (None, 0, 1):  # at a terminal, the client's own drawing says the same
        assert at_a_terminal(tree, depth) == client.render(name, "text", depth=depth)
    for node in tree.nodes:
        if node.threshold is not None:
            assert f"< {node.threshold:.6g}" in text
            assert f"≥ {node.threshold:.6g}" in svg
    assert ("m: " in svg) == (tree.nodes[-1].mass is not None)
    paths = client.classify(name, [["red", 0.1]], want_paths=True).paths
    assert paths is not None
    assert len(paths[0]) <= tree.depth


def test_what_cannot_be_served_is_refused_at_creation(client: Client, name: str) -> None:
    def create(classes: int = 2, **options: Any) -> None:
        names = [f"c{i}" for i in range(classes)]
        client.create_model(name, Specification([Numeric("x")], names, **options))

    for options, field in (
        ({"learner": "averaging", "pruning": Pruning("likelihood")}, "specification.pruning"),
        ({"learner": {"name": "c45", "confidence": 2.0}}, "specification.learner.confidence"),
        ({"learner": {"name": "forest", "trees": 0}}, "specification.learner.trees"),
        ({"learner": {"name": "forest", "base": "forest"}}, "specification.learner.base"),
        ({"learner": "belief-entropy", "classes": 17}, "specification.leaf"),
        ({"learner": "random"}, "specification.learner.name"),
        ({"learner": {"name": "id3", "lam": 1.0}}, "specification.learner.lam"),
        ({"learner": {"name": "forest", "vote": "loud"}}, "specification.learner.vote"),
    ):
        with pytest.raises(InvalidArgument, match=field):
            create(**options)


def test_every_learner_is_declared_with_its_parameters(client: Client, name: str) -> None:
    """A form that is made of a declaration creates the learner that the declaration describes."""
    declared = {each.name: each for each in client.learners()}

    def told(each: Any, kind: Any, **more: Any) -> Any:
        return kind(**{one.name: getattr(each, one.name) for one in fields(kind)} | more)

    assert declared == {
        each.name: told(each, Learner, strategies=tuple(told(one, Strategy) for one in each.strategies))
        for each in learners.declarations()
    }
    forest = declared["forest"]
    assert forest.bases == tuple(name for name, each in learners.learner_classes().items() if each.is_base)
    assert forest.summary == "A forest: bootstrap samples, random attributes at each node, and a vote."
    features = next(each for each in forest.parameters if each.name == "max_features")
    assert features.bound_text == "must be one of root, half, all, or a whole number in [1, 1000000]"
    for offered in declared.values():
        learner = {"name": offered.name, **{each.name: each.default for each in offered.parameters}}
        model = f"{name}-{offered.name}"
        asking = offered.strategies[-1]
        strategy = {"name": asking.name, **{each.name: each.default for each in asking.parameters}}
        given = Specification([Numeric("x")], CLASSES[:2], learner=learner, strategy=strategy)
        held = client.create_model(model, given).specification
        if offered.bases:  # all parameters are kept, those of its base too
            base = declared["belief-entropy"]
            learner["base"] = {"name": base.name, **{each.name: each.default for each in base.parameters}}
        assert (held.learner, held.strategy) == (learner, strategy)


def test_uncertain_values_are_checked(client: Client, name: str) -> None:
    attributes = [Nominal("colour", COLOURS), Numeric("length", edges=EDGES)]
    client.create_model(name, Specification(attributes, CLASSES))
    client.wait_grown(name)
    for row, field in (
        ([set(), 1.0], "colour"),
        (["red", Between(2.0, 1.0)], "length"),
        (["red", Between(float("nan"), 1.0)], "length"),
    ):
        with pytest.raises(InvalidArgument, match=field):
            client.classify(name, [row])
        with pytest.raises(InvalidArgument, match=field):
            client.push(name, [row])


@pytest.mark.parametrize("which", LEARNERS)
@pytest.mark.parametrize("most", [2, None])
def test_the_bucket_of_names_beyond_the_bound_is_one_more_value_for_every_learner(
    which: str, most: int | None
) -> None:
    """A row of the bucket is predicted from the rows of the bucket."""
    colour = DomainNominal("colour", COLOURS, max_values=most)
    bucket = float(colour.most_values)
    learner = LEARNERS[which][1]
    rules = {"min_instances": 15} if isinstance(learner, BeliefEntropy) else {}
    attributes = (colour, DomainNumeric("length", edges=EDGES))
    evidence = LoggedEvidence(DomainSpecification(attributes, FRAME, learner=learner, **rules))
    kinds = np.random.default_rng(0).integers(0, 3, 150)
    values = np.column_stack([np.where(kinds == 2, bucket, kinds), np.ones(150)])
    evidence.observe(values, [precise(FRAME, CLASSES[kind]) for kind in kinds.tolist()])
    said = evidence.learn_model().predict(np.array([[0.0, 1.0], [1.0, 1.0], [bucket, 1.0]]))
    assert said.klass.tolist() == [0, 1, 2]
