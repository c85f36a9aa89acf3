"""Laws of every learner. Another one joins by a line in BASES."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning, SpecifiedLearner
from quercus.trees import C45, FORESTS, Abc45, Averaging, BeliefEntropy, E2m, Forest, Id3, TotalUncertainty
from quercus.trees.learners.cells import Between, Value
from quercus.trees.learners.learner import fit
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.table import Table

BASES: dict[str, SpecifiedLearner] = {
    "abc45": Abc45(alpha=0.9),
    "e2m": E2m(),
    "id3": Id3(),
    "c45": C45(),
    "averaging": Averaging(),
    "total-uncertainty": TotalUncertainty(lam=0.7),
    "total-uncertainty, chosen": TotalUncertainty(folds=3, combine="mean"),
    "OBE": BeliefEntropy("OBE", min_instances=4),
    "LBE": BeliefEntropy("LBE", min_instances=4),
    "IBE": BeliefEntropy("IBE", min_instances=4),
}
JOINED = ("abc45", "c45", "e2m", "total-uncertainty", "IBE")
"""Members of forests: one of each kind of prediction, which is all that a forest sees of them."""
VOTING = ("c45", "IBE")
"""Votes are counted alike whatever votes."""
LEARNERS: dict[str, SpecifiedLearner] = {
    **BASES,
    **{f"forest of {name}": Forest(BASES[name], 4, "mass") for name in JOINED},  # type: ignore[arg-type]
    **{f"votes of {name}": Forest(BASES[name], 3, "label", 2) for name in VOTING},  # type: ignore[arg-type]
}
ATTRIBUTES = (Nominal("colour", ("red", "green", "blue")), Numeric("length"), Numeric("noise"))
QUICK = {*BASES, "forest of abc45", "forest of c45", "forest of e2m", "votes of c45"}
"""Learners that every change tests: each learner, and forests of each kind of prediction."""

every = pytest.mark.parametrize(
    "learner",
    [
        pytest.param(each, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, each in LEARNERS.items()
    ],
)
CLASSES = 3


def rows(seed: int, count: int = 45, lost: float = 0.1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, count)
    colour = np.where(rng.random(count) < 0.2, rng.integers(0, 3, count), classes)
    values = np.column_stack([colour, classes + rng.normal(0, 0.3, count), rng.normal(0, 1, count)])
    values[rng.random(values.shape) < lost] = np.nan
    return values, classes


def labelled(seed: int = 0, open_: float = 0.3, count: int = 45) -> Table:
    values, classes = rows(seed, count)
    contours = np.eye(CLASSES)[classes]
    rng = np.random.default_rng(seed)
    contours[rng.random(count) < open_] = 1.0
    doubtful = rng.random(count) < 0.2
    contours[doubtful] = np.maximum(contours[doubtful], 0.3)
    return Table.of_contours(values, ATTRIBUTES, contours)


def masses(seed: int = 0) -> Table:
    values, classes = rows(seed)
    kinds = [{1 << c: 1.0} if i % 2 else {1 << c: 0.6, 7: 0.4} for i, c in enumerate(classes.tolist())]
    return Table.of_masses(values, ATTRIBUTES, [MassFunction.of(CLASSES, kind) for kind in kinds])


def check(said: Predictions, count: int, size: int = CLASSES, *, by_theta: bool = True) -> None:
    assert said.klass.shape == (count,)
    for column in (said.theta, said.pignistic, said.belief, said.plausibility, said.classes):
        assert column.shape == (count, size)
    np.testing.assert_allclose(said.theta.sum(axis=1), 1.0)
    assert (said.belief - 1e-12 <= said.theta).all()
    assert (said.theta <= said.plausibility + 1e-12).all()
    assert (said.belief >= -1e-12).all()
    assert (said.plausibility <= 1 + 1e-12).all()
    assert said.classes[np.arange(count), said.klass].all()
    if by_theta:
        assert (said.theta[np.arange(count), said.klass] >= said.theta.max(axis=1) - 1e-9).all()
    if said.masses is not None:
        assert len(said.masses) == count
        for row, mass in enumerate(said.masses):
            np.testing.assert_allclose(mass.contour(), said.plausibility[row], atol=1e-9)


def other_labels(kind: str, seed: int = 0) -> Table:
    """Sets, plausibilities (also below 1), answers that may be wrong, and random masses."""
    values, classes = rows(seed)
    rng, precise = np.random.default_rng(seed), np.eye(CLASSES)[classes]
    if kind == "random masses":
        shares = rng.dirichlet(np.ones(7), len(classes))
        return Table.of_masses(
            values,
            ATTRIBUTES,
            [MassFunction.of(CLASSES, dict(enumerate(each.tolist(), 1))) for each in shares],
        )
    wrong = np.where(rng.random(len(classes)) < 0.3, rng.integers(0, CLASSES, len(classes)), classes)
    contours = {
        "sets": np.maximum(precise, np.eye(CLASSES)[rng.integers(0, CLASSES, len(classes))]),
        "plausibilities": 0.7 * np.maximum(precise, rng.random(precise.shape)),
        "answers of reliability .8": 0.8 * np.eye(CLASSES)[wrong] + 0.2,
    }[kind]
    return Table.of_contours(values, ATTRIBUTES, contours)


def uncertain() -> list[list[Value]]:
    return [
        [None, None, None],
        [frozenset({0, 2}), 1.0, 0.0],
        [1, Between(0.2, 1.7), 0.0],
        [frozenset({1, 2}), Between(-9.0, 9.0), None],
        [0, frozenset({0.1, 2.2}), Between(0.0, 0.0)],
        [7, 1.0, 0.0],  # a colour that no row had
    ]


def says(model: LearnedModel) -> list[list[float]]:
    values, _ = rows(99, 30)
    said = model.predict(values)
    return [*said.theta.tolist(), *said.belief.tolist(), *model.predict_rows(uncertain()).theta.tolist()]


@every
@pytest.mark.parametrize("table", [labelled(), masses()], ids=["contours", "masses"])
def test_it_learns_and_says_what_predictions_hold(learner: SpecifiedLearner, table: Table) -> None:
    model = fit(learner, table)
    assert (model.size, model.attributes) == (CLASSES, ATTRIBUTES)
    assert all(tree.count > 0 for tree in model.trees)
    values, classes = rows(1, 60)
    said = model.predict(values)
    check(said, 60)
    assert (said.klass == classes).mean() > 0.5
    check(model.predict_rows(uncertain()), 6)
    check(model.predict(values[:0]), 0)


@every
@pytest.mark.parametrize("kind", ["sets", "plausibilities", "answers of reliability .8", "random masses"])
def test_the_probability_lies_between_belief_and_plausibility(learner: SpecifiedLearner, kind: str) -> None:
    base, at_levels = getattr(learner, "base", learner), [learner]
    if isinstance(base, Abc45 | E2m):
        leveled = [replace(base, prediction_level=level) for level in (0.0, 0.75, 1.0)]
        at_levels = [replace(learner, base=each) if isinstance(learner, Forest) else each for each in leveled]
    values, _ = rows(11, 40)
    for each in at_levels:
        model = fit(each, other_labels(kind))
        by_theta = not (isinstance(base, BeliefEntropy) and base.leaf == "OBE")  # which sums plausibilities
        check(model.predict(values), 40, by_theta=by_theta)
        check(model.predict_rows(uncertain()), 6, by_theta=by_theta)


@every
def test_uncertain_values_that_are_certain_change_nothing(learner: SpecifiedLearner) -> None:
    model = fit(learner, labelled())
    values, _ = rows(2, 20, lost=0.2)
    wrapped = [[None if np.isnan(v) else frozenset({v}) for v in row] for row in values.tolist()]
    np.testing.assert_allclose(model.predict_rows(wrapped).theta, model.predict(values).theta, atol=1e-12)
    one_by_one = np.concatenate([model.predict(row[None]).theta for row in values])
    np.testing.assert_allclose(one_by_one, model.predict(values).theta, atol=1e-12)


@every
def test_it_is_a_function_of_its_evidence_and_travels(learner: SpecifiedLearner) -> None:
    model, again = fit(learner, labelled()), fit(learner, labelled())
    assert model.trees == again.trees
    assert says(model) == says(again)
    assert says(pickle.loads(pickle.dumps(model))) == says(model)  # noqa: S301


@every
def test_precise_labels(learner: SpecifiedLearner) -> None:
    values, classes = rows(5)
    said = fit(learner, Table.of_classes(values, ATTRIBUTES, classes, CLASSES)).predict(values)
    check(said, len(values))
    assert (said.klass == classes).mean() > 0.7


@every
def test_vacuous_labels_leave_everything_open(learner: SpecifiedLearner) -> None:
    values, _ = rows(6)
    said = fit(learner, Table.of_contours(values, ATTRIBUTES, np.ones((len(values), CLASSES)))).predict(
        values
    )
    check(said, len(values))
    assert said.classes.all()
    np.testing.assert_allclose(
        said.theta, 1 / CLASSES if isinstance(learner, Forest) is False else said.theta
    )


@every
def test_one_class(learner: SpecifiedLearner) -> None:
    values, _ = rows(7)
    said = fit(learner, Table.of_classes(values, ATTRIBUTES, [1] * len(values), CLASSES)).predict(values)
    check(said, len(values))
    assert (said.klass == 1).all()


@every
@pytest.mark.parametrize("contour", [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.2, 0.9, 0.4]])
def test_one_row(learner: SpecifiedLearner, contour: list[float]) -> None:
    said = fit(learner, Table.of_contours([[1, 2.0, np.nan]], ATTRIBUTES, [contour])).predict([[1, 2.0, 3.0]])
    check(said, 1)
    precise_only = isinstance(getattr(learner, "base", learner), Id3 | C45)
    if contour[0] < 1 and not (precise_only and contour[0] > 0):
        assert said.klass.tolist() == [1]


@every
def test_two_classes(learner: SpecifiedLearner) -> None:
    values, classes = rows(8)
    said = fit(learner, Table.of_classes(values, ATTRIBUTES, np.minimum(classes, 1), 2)).predict(values)
    check(said, len(values), 2)
    assert (said.klass == np.minimum(classes, 1)).mean() > 0.7


@pytest.mark.parametrize("learner", BASES.values(), ids=BASES)
def test_a_weight_of_two_is_a_row_twice(learner: SpecifiedLearner) -> None:
    table = labelled(3, 0.2)
    times = np.random.default_rng(0).integers(0, 3, len(table))
    weighted = fit(learner, Table.of_contours(table.values, ATTRIBUTES, table.contours, times))
    repeated = fit(learner, table.take(np.repeat(np.arange(len(table)), times)))
    if isinstance(learner, TotalUncertainty) and learner.lam is None:
        return  # the folds part rows: those of weight 2 stay together
    values, _ = rows(9)
    np.testing.assert_allclose(weighted.predict(values).theta, repeated.predict(values).theta, atol=1e-6)


@every
def test_the_model_without_rows_says_that_all_is_possible(learner: SpecifiedLearner) -> None:
    said = learner.vacuous_model(ATTRIBUTES, CLASSES).predict_rows(uncertain())
    check(said, 6)
    assert said.belief.max() == 0.0
    assert said.plausibility.min() == 1.0


def test_the_papers_forests_have_its_names() -> None:
    table = labelled()
    for name, forest in FORESTS.items():
        assert (forest.vote[0].upper(), getattr(forest.base, "leaf", None)) == (name[0], name[2:5])
        check(fit(Forest(forest.base, 2, forest.vote), table).predict(table.values), len(table))


def test_too_many_classes_for_masses_are_refused_by_name() -> None:
    wide = Table.of_contours([[0, 1.0, 2.0], [1, 2.0, 1.0]], ATTRIBUTES, np.ones((2, 17)))
    for learner, field in (
        (BeliefEntropy("LBE"), "leaf"),
        (TotalUncertainty(lam=0.5), "combine"),
        (Forest(E2m(), 2, "mass"), "vote"),
    ):
        with pytest.raises(InvalidInput) as caught:
            fit(learner, wide)
        assert caught.value.field == field
    check(fit(TotalUncertainty(lam=0.5, combine="mean"), wide).predict([[0, 1.0, 1.0]]), 1, 17)
    check(fit(Forest(E2m(), 2), wide).predict([[0, 1.0, 1.0]]), 1, 17)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Abc45(alpha=1.5), "alpha"),
        (lambda: E2m(max_cuts=0), "max_cuts"),
        (lambda: Id3(significance=1.0), "significance"),
        (lambda: C45(confidence=0.0), "confidence"),
        (lambda: C45(min_branch=0), "min_branch"),
        (lambda: Averaging(min_instances=0), "min_instances"),
        (lambda: Averaging(max_depth=-1), "max_depth"),
        (lambda: TotalUncertainty(lam=2.0), "lam"),
        (lambda: TotalUncertainty(combine="vote"), "combine"),  # type: ignore[arg-type]
        (lambda: TotalUncertainty(folds=1), "folds"),
        (lambda: BeliefEntropy("XBE"), "leaf"),  # type: ignore[arg-type]
        (lambda: Forest(Forest()), "base"),  # type: ignore[arg-type]
        (lambda: Forest(trees=0), "trees"),
        (lambda: Forest(vote="both"), "vote"),  # type: ignore[arg-type]
        (lambda: Forest(max_features="most"), "max_features"),  # type: ignore[arg-type]
        (lambda: Forest(max_features=0), "max_features"),
        (lambda: Forest(seed=-1), "seed"),
    ],
)
def test_impossible_parameters_are_refused_by_name(make: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()  # type: ignore[operator]
    assert caught.value.field == field


@every
@pytest.mark.parametrize("scale", [0.2, 1e-300])
def test_a_factor_of_a_label_says_nothing(learner: SpecifiedLearner, scale: float) -> None:
    """A contour need not reach 1 (theory §1.3), and tiny plausibilities do not vanish."""
    values, classes = rows(3)
    contours = np.eye(CLASSES)[classes]
    contours[::5] = 1.0
    whole = fit(learner, Table.of_contours(values, ATTRIBUTES, contours)).predict(values)
    said = fit(learner, Table.of_contours(values, ATTRIBUTES, contours * scale)).predict(values)
    check(said, len(values))
    np.testing.assert_allclose(said.theta, whole.theta, atol=1e-9)
    np.testing.assert_allclose(said.plausibility, whole.plausibility, atol=1e-9)


@pytest.mark.parametrize("kind", ["likelihood", "chi-square"])
def test_nor_does_it_for_pruning(kind: str) -> None:
    values, classes = rows(3)
    learner = E2m(pruning=Pruning(kind))  # type: ignore[arg-type]
    whole, tiny = (
        fit(learner, Table.of_contours(values, ATTRIBUTES, np.eye(CLASSES)[classes] * scale)).trees
        for scale in (1.0, 5e-324)
    )
    assert whole == tiny


@every
def test_weights_beyond_measure_are_refused_or_counted(learner: SpecifiedLearner) -> None:
    values, classes = rows(4)
    table = Table.of_classes(values, ATTRIBUTES, classes.tolist(), CLASSES, np.full(len(values), 2.0**60))
    base = learner.base if isinstance(learner, Forest) else learner
    if isinstance(base, Abc45 | E2m):
        with pytest.raises(InvalidInput, match=r"weights: sum to .*rows are counted"):
            fit(learner, table)
    else:
        check(fit(learner, table).predict(values), len(values))


def test_a_weight_has_a_bound() -> None:
    values, classes = rows(4, 3)
    for weight in (1e101, np.inf, np.nan, -1.0):
        with pytest.raises(InvalidInput, match=r"weights\[1\]: is .*, must lie in \[0, 1e\+100\]"):
            Table.of_classes(values, ATTRIBUTES, classes.tolist(), CLASSES, [1.0, weight, 1.0])
