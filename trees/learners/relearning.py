"""The fold of the log for learners that learn anew from all evidence; `quercus.trees.growth.stream` is incremental.

A model is a function of the evidence alone: the rows and their labels, in the order of the log. Labels are kept both as
contours and as mass functions, for the learners that use these.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from quercus.belief import evidence
from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput, TooManyFocalSets, TotalConflict
from quercus.belief.evidence import ReportedLabel, known_after
from quercus.belief.label import ClassSet, Label, Masses, contour
from quercus.belief.mass import MassFunction, consonant_mass
from quercus.belief.rules import dempster, discount
from quercus.specification.attributes import Attribute, Nominal, WholeNominal
from quercus.specification.model import Specification
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.entropy_model import BeliefEntropyModel
from quercus.trees.learners.forest import ForestModel
from quercus.trees.learners.learner import Learner, fit
from quercus.trees.learners.one_against_rest import OneAgainstRest
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.memory_forest.served import ServedForest
from quercus.trees.tree.encoding import Parts, Range, check_uncertain
from quercus.trees.tree.flat import FlatTree

MAX_SETS_OF_A_LABEL = 1_024
"""Maximum number of focal sets of a label: trees collect the focal sets of all rows."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownLabel:
    """The current label of an instance: a contour (l,) and a mass function."""

    contour: Floats
    mass: MassFunction

    @classmethod
    def of(cls, label: Label, size: int) -> "KnownLabel":
        """Return the contour and the mass function of a label; plausibilities have their `consonant_mass`."""
        plausibilities = contour(label, size)
        match label:
            case ClassSet(mask):
                return cls(plausibilities, MassFunction.of(size, {mask: 1.0}))
            case Masses(mass):
                return cls(plausibilities, mass)
            case _:
                return cls(plausibilities, consonant_mass(plausibilities))

    def after_answer(self, answer: "KnownLabel", reliability: float) -> "KnownLabel":
        """Return the label after an answer, see `quercus.belief.evidence.update` and `combined_mass`."""
        contour = evidence.combined_contour(self.contour, answer.contour, reliability)
        return KnownLabel(contour, combined_mass(self.mass, answer.mass, reliability))


def combined_mass(known: MassFunction, answer: MassFunction, reliability: float) -> MassFunction:
    """Return the mass function after an answer.

    A certain answer (one class, reliability 1) replaces the known label. Any other is discounted and combined with it
    by Dempster's rule; in case of total conflict, the answer replaces the label. If the result has too many focal sets,
    it is replaced by the consonant mass function of the combined contour, which preserves the plausibility of each
    class.

    Examples
    --------
    >>> known = MassFunction.of(2, {1: 0.5, 3: 0.5})
    >>> [(mask, round(m, 3)) for mask, m in combined_mass(known, MassFunction.of(2, {2: 1.0}), 0.5).focal]
    [(1, 0.333), (2, 0.333), (3, 0.333)]
    """
    if reliability == 1.0 and len(answer.focal) == 1 and answer.focal[0][0].bit_count() == 1:
        return answer
    weakened = few_sets(discount(answer, reliability))
    try:
        return few_sets(dempster(known, weakened))
    except TotalConflict:
        return weakened
    except TooManyFocalSets:
        plausible = known.contour() * weakened.contour()
        return consonant_mass(plausible) if plausible.any() else weakened


def few_sets(mass: MassFunction) -> MassFunction:
    """Return a mass function with at most 1,024 focal sets, replacing larger ones by the consonant mass function."""
    return mass if len(mass.focal) <= MAX_SETS_OF_A_LABEL else consonant_mass(mass.contour())


class LoggedEvidence:
    """All evidence in the log of a model.

    Parameters
    ----------
    specification
        The current specification; it may be replaced by another one with the same attributes and frame.
    """

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self._values: list[Floats] = []
        self._parts: dict[tuple[int, int], tuple[Range, ...]] = {}
        self._labels: dict[Label, int] = {}  # number of each distinct label
        self._distinct: list[KnownLabel] = []  # the distinct labels, in order of their numbers
        self._which = array("i")  # number of the label of each instance
        self._known: dict[int, KnownLabel] = {}  # labels after answers

    def __len__(self) -> int:
        return len(self._which)

    def observe(self, values: Floats, labels: Sequence[Label], parts: Parts = MappingProxyType({})) -> None:
        """Add instances: values (n, K) as in `quercus.trees.tree.encoding`, and a label each.

        `parts` are ranges of uncertain values, by row (from 0 on) and attribute.

        Raises
        ------
        InvalidInput
            If a value is impossible; then nothing is added.
        """
        checked = check_uncertain(self.specification, values, parts)
        if len(checked) != len(labels):
            raise InvalidInput("labels", f"are {len(labels)}, must be one for each of {len(checked)} rows")
        size = self.specification.frame.size
        for label in dict.fromkeys(labels):
            if label not in self._labels:
                known = KnownLabel.of(label, size)
                known = replace(known, mass=few_sets(known.mass))
                self._labels[label] = len(self._distinct)
                self._distinct.append(known)
        first = len(self)
        self._parts |= {(first + row, k): ranges for (row, k), ranges in parts.items()}
        self._values.append(checked)
        self._which.extend(self._labels[label] for label in labels)

    def add_label(self, instance: int, reported: ReportedLabel[Label]) -> None:
        """Fold a label that an event reports about the instance with this number."""
        known, pushed = self.known_label(instance), self._distinct[self._which[instance]]
        size = self.specification.frame.size
        now = known_after(
            pushed,
            known,
            reported.with_label(lambda label: KnownLabel.of(label, size)),
            KnownLabel.after_answer,
        )
        if now is pushed:
            self._known.pop(instance, None)
        else:
            self._known[instance] = now

    def known_label(self, instance: int) -> KnownLabel:
        """Return the current label of an instance.

        Raises
        ------
        InvalidInput
            If there is no such instance.
        """
        if not 0 <= instance < len(self):
            raise InvalidInput("instance", f"is {instance}, there are {len(self)} instances")
        return self._known.get(instance) or self._distinct[self._which[instance]]

    @property
    def values(self) -> Floats:
        """(n, K) values of all rows; read only."""
        if len(self._values) != 1:
            none = np.empty((0, len(self.specification.attributes)))
            self._values = [np.concatenate([none, *self._values])]
        return self._values[0]

    @property
    def cells(self) -> UncertainValues:
        """The values of all rows, some of which may be uncertain."""
        return UncertainValues(self.values, self._parts)

    def contours(self) -> Floats:
        """Return the current contour of each row, (n, l)."""
        size = self.specification.frame.size
        of_labels = np.array([known.contour for known in self._distinct]).reshape(-1, size)
        found: Floats = of_labels[np.array(self._which, dtype=np.int64)]
        for instance, known in self._known.items():
            found[instance] = known.contour
        return found

    def table(self) -> Table | None:
        """Return the rows and their labels; None if there are none.

        A nominal attribute has all declared and seen values.
        """
        if not self._which:
            return None
        values, contours = self.values, self.contours()
        given = None
        if self._known or any(isinstance(label, Masses) for label in self._labels):
            masses = [self._distinct[number].mass for number in self._which]
            for instance, known in self._known.items():
                masses[instance] = known.mass
            given = tuple(masses)
        attributes = _with_learned_values(self.specification.attributes, self.cells)
        return Table(values, attributes, contours, np.ones(len(values)), given, self._parts)

    def learn_model(self) -> LearnedModel:
        """Return the model of all evidence, with the codes of the service (see `quercus.trees.tree.encoding`)."""
        specification = self.specification
        table = self.table()
        learner = specification.learner
        if not isinstance(learner, Learner):
            raise TypeError(f"{learner.name} does not learn")
        if table is None:
            return learner.vacuous_model(specification.attributes, specification.frame.size)
        return as_served(fit(learner, table), specification.attributes)


def as_served(model: LearnedModel, declared: tuple[Attribute, ...]) -> LearnedModel:
    """Return a model that knows undeclared nominal values, with the codes of the service.

    Learners give missing values the code after those of all values. In the service it comes after the declared values,
    and values learned later follow it, so that codes never change. Models of other packages take values unchanged.
    """
    match model:
        case ForestModel():
            members = tuple(as_served(member, declared) for member in model.models)
            return replace(model, models=members, attributes=declared)
        case OneAgainstRest():
            trees = tuple(
                replace(tree, flat=_recode_model(tree, declared), attributes=declared)
                for tree in model.models
            )
            return replace(model, models=trees, attributes=declared)
        case TreeModel():
            return replace(model, flat=_recode_model(model, declared), attributes=declared)
        case ServedForest():  # its members take values unchanged
            return replace(
                model,
                tree=replace(model.tree, flat=_recode_model(model.tree, declared), attributes=declared),
                attributes=declared,
            )
        case BeliefEntropyModel():  # its branches are classes, not values
            return replace(model, attributes=declared)
    return model


def _recode_model(model: TreeModel, declared: tuple[Attribute, ...]) -> FlatTree:
    flat = model.flat
    branch = flat.branch.copy()
    tested = flat.attribute[flat.parent[1:]]
    for k, (attribute, known) in enumerate(zip(declared, model.attributes, strict=True)):
        if isinstance(attribute, Nominal) and isinstance(known, Nominal) and attribute.missing == "branch":
            first, lost = len(attribute.values), len(known.values)
            here = np.flatnonzero(tested == k) + 1
            code = branch[here]
            branch[here] = np.where(code == lost, first, np.where(code >= first, code + 1, code))
    return replace(flat, branch=branch)


def _with_learned_values(declared: tuple[Attribute, ...], cells: UncertainValues) -> tuple[Attribute, ...]:
    """Return the attributes with a placeholder for every value learned after the declaration."""
    found: list[Attribute] = []
    of_sets = np.full(len(declared), -1)
    for (_, k), ranges in cells.parts.items():
        of_sets[k] = max(of_sets[k], *(high for _, high in ranges))
    for attribute, column, most in zip(declared, cells.values.T, of_sets.tolist(), strict=True):
        if isinstance(attribute, Nominal):
            count = int(np.nanmax(column, initial=most)) + 1
            learned = (f"learned value {i}" for i in range(count - len(attribute.values)))
            found.append(WholeNominal(attribute.name, (*attribute.values, *learned), attribute.missing))
        else:
            found.append(attribute)
    return tuple(found)
