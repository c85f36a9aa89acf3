"""Labels with thousands of focal sets: a learner takes them, where it would run out of pairs."""

import numpy as np
import pytest

from quercus.belief.evidence import ReportedLabel
from quercus.belief.frame import Frame
from quercus.belief.label import Label, Masses, vacuous
from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.trees import Averaging
from quercus.trees.learners.averaging import mean_mass
from quercus.trees.learners.relearning import LoggedEvidence, combined_mass

CLASSES = 20
FRAME = Frame(tuple(f"c{i}" for i in range(CLASSES)))


def many(seed: int, sets: int, least: int = 1) -> MassFunction:
    rng = np.random.default_rng(seed)
    masks = rng.choice(np.arange(least, 1 << CLASSES), sets, replace=False)
    return MassFunction.of(CLASSES, {int(mask): 1.0 / sets for mask in masks})


def test_a_model_learns_from_answers_of_thousands_of_sets() -> None:
    specification = Specification((Numeric("x"),), FRAME, learner=Averaging())
    evidence = LoggedEvidence(specification)
    labels: list[Label] = [Masses(many(0, 3_000)), vacuous(FRAME)]
    evidence.observe(np.array([[0.0], [1.0]]), labels)
    for instance in (0, 1):
        evidence.add_label(instance, ReportedLabel(Masses(many(1, 3_000)), 0.9))
    for instance in (0, 1):
        found = evidence.known_label(instance).mass.contour()
        np.testing.assert_allclose(found / found.max(), evidence.known_label(instance).contour, atol=1e-9)
    assert evidence.learn_model().flat_trees[0].size >= 1


def test_what_cannot_be_combined_keeps_its_contour() -> None:
    one, other = many(2, 1_000), many(3, 1_000)
    found = combined_mass(one, other, 1.0)
    product = one.contour() * other.contour()
    assert len(found.focal) <= CLASSES
    contour = found.contour()
    np.testing.assert_allclose(contour / contour.max(), product / product.max(), atol=1e-12)


def test_a_mean_of_too_many_sets_keeps_its_contour() -> None:
    parts = [many(seed, 40_000) for seed in (4, 5)]
    mean = mean_mass(dict.fromkeys(parts, 1.0))
    contour = sum(part.contour() for part in parts)
    assert len(mean.focal) <= CLASSES
    assert mean.contour() == pytest.approx(contour / np.max(contour))
