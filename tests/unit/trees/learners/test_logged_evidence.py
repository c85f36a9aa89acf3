"""The evidence of the log, for learners that learn again from all of it."""

import numpy as np
import pytest

from quercus.belief.evidence import ReportedLabel
from quercus.belief.frame import Frame
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities
from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Numeric
from quercus.specification.learners import SpecifiedLearner
from quercus.specification.model import Specification
from quercus.trees import Averaging, BeliefEntropy, TotalUncertainty
from quercus.trees.learners.learner import fit
from quercus.trees.learners.relearning import LoggedEvidence
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import two_class_shares

ATTRIBUTES = (Numeric("x"),)
VALUES = np.arange(6.0)[:, np.newaxis]
LOW: list[Label] = [  # none of which has a class of plausibility 1
    Plausibilities((0.5, 0.1, 0.0)),
    Plausibilities((0.2, 0.3, 0.3)),
    Masses(MassFunction.of(3, {1: 0.5, 2: 0.5})),
    Plausibilities((0.0, 0.0, 0.4)),
    Masses(MassFunction.of(3, {1: 0.2, 6: 0.8})),
    Plausibilities((0.3, 0.6, 0.6)),
]


def evidence_of(learner: SpecifiedLearner, labels: list[Label]) -> LoggedEvidence:
    evidence = LoggedEvidence(Specification(ATTRIBUTES, Frame(("a", "b", "c")), learner=learner))
    evidence.observe(VALUES, labels)
    evidence.add_label(2, ReportedLabel(ClassSet(1), 0.5))
    return evidence


def test_what_a_class_and_the_others_share_is_that_of_the_mass_functions() -> None:
    evidence = evidence_of(Averaging(), LOW)
    table = evidence.table()
    assert table is not None
    for klass in range(3):
        rest = 0b111 & ~(1 << klass)
        expected = [
            [sum(m for s, m in mass.focal if s & ~inside == 0) for inside in (1 << klass, rest)]
            for mass in (evidence.known_label(row).mass for row in range(6))
        ]
        np.testing.assert_allclose(two_class_shares(table, klass), expected, atol=1e-12)


@pytest.mark.parametrize(
    "learner", [Averaging(), TotalUncertainty(0.5), BeliefEntropy("OBE"), BeliefEntropy("LBE")]
)
def test_a_model_of_the_log_is_that_of_its_mass_functions(learner: SpecifiedLearner) -> None:
    evidence = evidence_of(learner, LOW)
    masses = [evidence.known_label(row).mass for row in range(6)]
    expected = fit(evidence.specification.learner, Table.of_masses(VALUES, ATTRIBUTES, masses))
    found, wanted = evidence.learn_model().predict(VALUES), expected.predict(VALUES)
    for name in ("theta", "belief", "plausibility"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-9, err_msg=name)
    assert (found.belief <= found.plausibility + 1e-12).all()
