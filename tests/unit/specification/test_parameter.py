"""A parameter is declared once: checks, errors and docstrings come from the declaration."""

from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.specification import parameters
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import learner_classes
from quercus.specification.model import Specification
from quercus.specification.parameter import Parameter, parameters_of

DECLARED = [value for value in vars(parameters).values() if isinstance(value, Parameter)]
CLASSES = [*learner_classes().values(), Nominal, Numeric, Specification]


@pytest.mark.parametrize("parameter", DECLARED, ids=lambda parameter: parameter.name)
def test_defaults_and_bounds_are_values_and_what_is_beyond_them_is_not(parameter: Parameter) -> None:
    if parameter.default is not MISSING:
        assert parameter.check(parameter.default) == parameter.default
    for choice in parameter.choices:
        assert parameter.check(choice) == choice
    wrong: list[Any] = [
        "",
        object(),
        [1],
        *([] if parameter.kind is str and not parameter.choices else ["guess"]),
    ]
    wrong += [] if parameter.meaning_of_none else [None]
    wrong += [] if parameter.kind is bool else [True]
    if parameter.kind in (int, float):
        ends = [parameter.kind(parameter.lowest), parameter.kind(parameter.highest)]
        wrong += [float("nan"), ends[0] - 1, ends[1] + 1, *(ends if parameter.excludes_bounds else ())]
        for end in () if parameter.excludes_bounds else ends:
            assert parameter.check(end) == end
    for value in wrong:
        with pytest.raises(InvalidInput) as caught:
            parameter.check(value, "there")
        assert caught.value.field == "there"
        assert parameter.bound_text in caught.value.reason


@pytest.mark.parametrize("kind", CLASSES)
def test_every_field_says_what_it_is_and_choices_are_those_of_its_type(kind: Any) -> None:
    hints = get_type_hints(kind)
    declared = {each.name: each for each in parameters_of(kind)}
    for each in fields(kind):
        assert f"\n{each.name}\n    " in kind.__doc__
        if each.name in declared:
            words = {
                word for part in (hints[each.name], *get_args(hints[each.name])) for word in get_args(part)
            }
            known = {word for word in words if isinstance(word, str)}
            assert not known or known == set(declared[each.name].choices)


def test_words_beside_numbers() -> None:
    with pytest.raises(
        InvalidInput, match="max_features: is 'most', must be one of root, half, all, or a whole"
    ):
        parameters.MAX_FEATURES.check("most")


@pytest.mark.parametrize("number", [np.int8, np.int64, np.uint16])
def test_numbers_of_numpy_are_numbers(number: Any) -> None:
    found = parameters.MAX_DEPTH.check(number(3))
    assert (type(found), found) == (int, 3)
    found = parameters.ALPHA.check(number(1))
    assert (type(found), found) == (float, 1.0)
    with pytest.raises(InvalidInput, match=r"min_instances: is .*0.*, must be a whole number"):
        parameters.MIN_INSTANCES.check(number(0))


@pytest.mark.parametrize("number", [np.float16, np.float32, np.float64])
def test_parts_of_numpy_are_no_whole_numbers(number: Any) -> None:
    found = parameters.ALPHA.check(number(0.5))
    assert (type(found), found) == (float, 0.5)
    for wrong in (number(1.5), number("nan")):
        with pytest.raises(InvalidInput, match="must lie in"):
            parameters.ALPHA.check(wrong)
    with pytest.raises(InvalidInput, match="must be a whole number"):
        parameters.MAX_DEPTH.check(number(3.0))
