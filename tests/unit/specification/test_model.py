from collections.abc import Callable

import pytest

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning, SpecifiedLearner
from quercus.specification.model import Specification
from quercus.specification.strategies import MARGIN, RECOMMENDED
from quercus.trees import C45, Abc45, ActiveForest, BeliefEntropy, E2m, Forest

FRAME = Frame(("yes", "no"))
SIZE = Numeric("size")


def test_defaults() -> None:
    spec = Specification((SIZE,), FRAME)
    assert (spec.alpha, spec.budget, spec.min_instances, spec.max_depth, spec.warmup_rows) == (
        0.8,
        0,
        2,
        None,
        100,
    )
    assert spec.strategy.name == MARGIN
    assert spec.learner == ActiveForest()
    assert (spec.prediction_level, spec.split_significance) == (0.75, 10.0)
    assert (SIZE.bins, SIZE.edges, SIZE.missing) == (4, (), "branch")


@pytest.mark.parametrize(
    ("learner", "least", "level"),
    [
        (Abc45(), 2, 0.15),
        (C45(min_instances=7), 7, 0.15),
        (E2m(prediction_level=0.5), 2, 0.5),
        (Forest(BeliefEntropy()), 10, 0.15),
        (ActiveForest(prediction_level=0.6), 2, 0.6),
    ],
)
def test_what_is_not_given_is_the_default_of_the_learner(
    learner: SpecifiedLearner, least: int, level: float
) -> None:
    spec = Specification((SIZE,), FRAME, learner=learner)
    assert (spec.min_instances, spec.prediction_level) == (least, level)
    again = Specification((SIZE,), FRAME, min_instances=3, prediction_level=0.4, learner=learner)
    assert (again.min_instances, again.prediction_level) == (3, 0.4)


def test_the_splits_of_a_model_are_tested_and_those_of_the_library_are_not() -> None:
    """The tree of the papers is the library's; what the service grows is what measures best."""
    assert (Abc45().split_significance, E2m().split_significance) == (0.0, 0.0)
    assert Specification((SIZE,), FRAME, learner=Abc45()).learner == Abc45(split_significance=10.0)


def test_the_tree_beside_a_forest_may_be_pruned() -> None:
    pruning = Pruning("likelihood")
    assert Specification((SIZE,), FRAME, pruning=pruning).pruning == pruning
    with pytest.raises(InvalidInput, match="pruning: is given, but c45 is pruned by parameters of its own"):
        Specification((SIZE,), FRAME, pruning=pruning, learner=C45())


def test_a_strategy_is_of_the_forest_that_asks_or_of_a_tree() -> None:
    assert Specification((SIZE,), FRAME).strategy.name == MARGIN
    assert (
        Specification((SIZE,), FRAME, strategy="memory-disagreement").strategy.name == "memory-disagreement"
    )
    assert Specification((SIZE,), FRAME, learner=C45()).strategy.name == RECOMMENDED
    reason = "is 'published', must be one of margin, memory-disagreement; 'published' is for models"
    with pytest.raises(InvalidInput, match=f"strategy: {reason} whose tree asks"):
        Specification((SIZE,), FRAME, strategy="published")
    reason = "is 'margin', must be one of .*published, .*; 'margin' is for models whose forest asks"
    with pytest.raises(InvalidInput, match=f"strategy: {reason}"):
        Specification((SIZE,), FRAME, strategy="margin", learner=E2m())


def test_a_learner_that_learns_from_all_rows_has_no_memory() -> None:
    assert Specification((SIZE,), FRAME, memory_rows=500).memory_rows == 500
    with pytest.raises(InvalidInput, match="memory_rows: is 500, but c45 learns from all rows"):
        Specification((SIZE,), FRAME, memory_rows=500, learner=C45())
    with pytest.raises(InvalidInput, match=r"memory_rows: is 0, must be a whole number in \[1, 1000000\]"):
        Specification((SIZE,), FRAME, memory_rows=0)


def test_declared_edges_set_the_bins() -> None:
    assert Numeric("size", bins=9, edges=(1, 2)) == Numeric("size", bins=3, edges=(1.0, 2.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attributes": ()}, "attributes: has 0 attributes, must have 1 to 1000"),
        (
            {"attributes": tuple(Numeric(str(i)) for i in range(1001))},
            "attributes: has 1001 attributes, must have 1 to 1000",
        ),
        (
            {"attributes": (SIZE, SIZE)},
            "attributes[1]: is 'size', the same as number 1; must be distinct",
        ),
        ({"alpha": 1.5}, "alpha: is 1.5, must lie in [0, 1]"),
        ({"alpha": float("nan")}, "alpha: is nan, must lie in [0, 1]"),
        ({"alpha": "much"}, "alpha: is 'much', must lie in [0, 1]"),
        ({"budget": -1}, "budget: is -1, must be a whole number in [0, 1000000]"),
        ({"budget": 1.5}, "budget: is 1.5, must be a whole number in [0, 1000000]"),
        ({"min_instances": 0}, "min_instances: is 0, must be a whole number in [1, 1000000]"),
        ({"max_depth": -1}, "max_depth: is -1, must be a whole number in [0, 1000000]"),
        ({"warmup_rows": 0}, "warmup_rows: is 0, must be a whole number in [1, 1000000]"),
        ({"budget": True}, "budget: is True, must be a whole number in [0, 1000000]"),
        (
            {"attributes": (SIZE, Nominal("colour", ("red", "?")))},
            "attributes[1].values[1]: is '?', the name of the branch of missing values",
        ),
    ],
)
def test_bad_specification(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Specification(**({"attributes": (SIZE,), "frame": FRAME} | given))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": " "}, "name: is ' ', must be text and not empty"),
        ({"name": "n" * 101}, "name: has 101 characters, at most 100 are allowed"),
        ({"values": ("a", "b", "a")}, "values[2]: is 'a', the same as number 1; must be distinct"),
        ({"values": ("a", "")}, "values[1]: is '', must be text and not empty"),
        ({"values": tuple(map(str, range(1001)))}, "values: has 1001 values, at most 1000 are allowed"),
        ({"missing": "guess"}, "missing: is 'guess', must be one of branch, reject"),
    ],
)
def test_bad_nominal(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Nominal(**({"name": "colour"} | given))
    assert str(caught.value) == message


def test_a_question_mark_is_a_value_where_nothing_may_be_missing() -> None:
    colour = Nominal("colour", ("?",), "reject")
    assert Specification((colour,), FRAME).attributes == (colour,)


def test_a_learned_value_may_be_a_question_mark() -> None:
    """A client reads such a model as the service has it."""
    assert Nominal("colour", ("red", "?")).values == ("red", "?")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bins": 1}, "bins: is 1, must be a whole number in [2, 256]"),
        ({"bins": 257}, "bins: is 257, must be a whole number in [2, 256]"),
        ({"edges": tuple(range(256))}, "edges: has 256 edges, at most 255 are allowed"),
        ({"edges": (1.0, 1.0)}, "edges[1]: is 1.0, must be greater than the edge before it, 1.0"),
        ({"edges": (1.0, float("inf"))}, "edges[1]: is inf, must be a finite number"),
        ({"missing": None}, "missing: is None, must be one of branch, reject"),
    ],
)
def test_bad_numeric(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Numeric(**({"name": "size"} | given))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("make", "field", "said"),
    [
        (lambda: Numeric("x", cuts=0), "cuts", "0"),
        (lambda: Numeric("x", cuts=256), "cuts", "256"),
        (lambda: Numeric("x", edges=(1.0, 2.0), cuts=3), "cuts", "2 edges"),
        (lambda: Pruning("none"), "kind", "'none'"),  # type: ignore[arg-type]
        (lambda: Pruning("likelihood", 0.0), "level", "0.0"),
        (lambda: Pruning("likelihood", float("nan")), "level", "nan"),
        (lambda: Pruning("likelihood", True), "level", "True"),
    ],
)
def test_thresholds_and_pruning_are_checked(make: Callable[[], object], field: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        make()
    assert caught.value.field == field
