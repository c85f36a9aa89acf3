"""The form of a learner follows from its declaration: a field for each parameter, and values of the declared kinds."""

from typing import Any

import pytest

from quercus.belief.errors import InvalidInput
from quercus.client.results import Learner, Strategy
from quercus.console.learner_form import LearnerForm, Setting
from quercus.specification.learners import declarations
from quercus.specification.parameter import Parameter

NEAREST = Learner(
    "nearest",
    "Classes of the nearest rows.",
    (
        Parameter("rows", int, 5, "Number of rows", 1, 100, choices=("all",)),
        Parameter("reach", float, 0.5, "Greatest distance", 0, 9, meaning_of_none="any"),
        Parameter("norm", str, "city", "Distance", choices=("city", "euclid")),
        Parameter("scaled", bool, True, "Divide by the range"),
        Parameter("note", str, "", "What it is for"),
        Parameter("limit", int, None, "Most rows", 1, 9, meaning_of_none="no limit"),
    ),
    strategies=(
        Strategy("first", "The first row."),
        Strategy(
            "last", "The last row.", (Parameter("among", int, None, "Rows", 1, 9, meaning_of_none="all"),)
        ),
    ),
    package="far 1.0",
)
FOREST = Learner("wood", "Many of another.", (), ("nearest", "other"))
OTHER = Learner("other", "Without parameters.", ())


def form(**given: str) -> LearnerForm:
    fields = {name.replace("__", "."): text for name, text in given.items()}
    return LearnerForm((OTHER, NEAREST, FOREST), {"learner.name": "nearest"} | fields, {})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rows", "all", "all"), ("rows", " 7 ", 7), ("rows", "7.5", 7.5), ("rows", "seven", "seven"),
        ("rows", "none", "none"), ("rows", "9" * 5000, float("inf")), ("reach", "1", 1), ("reach", "1e-3", 0.001),
        ("reach", "none", None), ("norm", "euclid", "euclid"), ("norm", "8", "8"), ("scaled", "false", False),
        ("scaled", "maybe", "maybe"), ("note", "true", "true"), ("limit", "none", None),
    ],
)  # fmt: skip
def test_what_is_typed_is_of_the_declared_kind_or_stays_as_it_is(name: str, text: str, value: Any) -> None:
    """The last of these go to the server, whose error names the bound."""
    fields = form(**{f"learner__{name}": text}).fields()
    assert fields == {"learner": {"name": "nearest", name: value}, "strategy": None}
    assert type(fields["learner"][name]) is type(value)


def test_empty_is_the_default() -> None:
    empty = {f"learner__{each.name}": " " for each in NEAREST.parameters} | {"strategy.name": ""}
    assert form(**empty).fields() == {"learner": {"name": "nearest"}, "strategy": None}
    assert LearnerForm((OTHER,), {}, {}).fields() == {"learner": None, "strategy": None}
    assert not LearnerForm((Learner("active-forest", "", ()),), {"learner.trees": ""}, {}).is_touched
    assert form(strategy__name="last").fields()["strategy"] == {"name": "last"}


def test_every_parameter_has_the_field_that_its_declaration_asks_for() -> None:
    rows, reach, norm, scaled, note, limit = form().settings
    assert (rows.options, rows.words, rows.input_mode) == ({}, ("all",), "text")
    assert rows.hint == "Number of rows; must be one of all, or a whole number in [1, 100]. Default: 5."
    assert (reach.words, reach.hint) == (
        ("none",),
        "Greatest distance; must lie in [0, 9], or none: any. Default: 0.5.",
    )
    assert norm.options == {"": "default: city", "city": "city", "euclid": "euclid"}
    assert scaled.options == {"": "default: yes", "true": "yes", "false": "no"}
    assert (note.options, note.words, note.input_mode) == ({}, (), "text")
    assert (limit.words, limit.input_mode) == ((), "numeric")
    assert limit.hint == "Most rows; must be a whole number in [1, 9]. Default: no limit."
    chosen = Parameter("end", str, "a", "End", choices=("a", "b"), meaning_of_none="no end")
    assert Setting("learner.end", chosen).options["none"] == "none: no end"


def test_a_base_has_fields_once_it_is_chosen() -> None:
    wood = form(learner__name="wood")
    assert (wood.base, wood.base_settings) == (None, [])
    wood = form(learner__name="wood", learner__base__name="nearest", learner__base__rows="8")
    assert [each.name for each in wood.base_settings][:2] == ["learner.base.rows", "learner.base.reach"]
    assert wood.fields()["learner"] == {"name": "wood", "base": {"name": "nearest", "rows": 8}}
    assert form(learner__name="wood", learner__base__name="wood").base is None


def test_a_strategy_has_fields_once_it_is_chosen() -> None:
    assert form(strategy__name="first").strategy_settings == form().strategy_settings == []
    last = form(strategy__name="last", strategy__among="3")
    assert [each.name for each in last.strategy_settings] == ["strategy.among"]
    assert last.fields()["strategy"] == {"name": "last", "among": 3}
    with pytest.raises(InvalidInput, match=r"^strategy\.among: is 12, must be a whole number in \[1, 9\]"):
        form(strategy__name="last", strategy__among="12").check()
    unlike = form(strategy__name="first", strategy__among="3")
    assert unlike.fields()["strategy"] == {"name": "first", "among": "3"}  # for the server to refuse
    assert form(strategy__among="3").fields()["strategy"] == {"name": "first", "among": "3"}


def test_a_choice_of_another_learner_is_not_shown_but_sent() -> None:
    """The server says that this learner has it not; nothing that was typed is dropped in silence."""
    other = form(learner__name="other", learner__rows="8", strategy__name="last")
    assert (other.settings, other.strategy) == ([], None)
    assert other.fields() == {"learner": {"name": "other", "rows": "8"}, "strategy": {"name": "last"}}
    assert form(learner__name="gone").learner is OTHER  # the first, where the default is not installed
    assert form(learner__name="gone").fields()["learner"] == {"name": "gone"}


def test_the_default_comes_first_and_faults_stand_beside_their_fields() -> None:
    learners = declarations()
    found = LearnerForm(learners, {}, {"learner.trees": "is 0", "budget": "is -1"})
    assert found.choices[0].name == found.learner.name == "active-forest"
    assert {each.name for each in found.choices} == {each.name for each in learners}
    assert [each.fault for each in found.settings if each.parameter.name == "trees"] == ["is 0"]
    assert found.is_touched
    assert found.fault("budget") == ""
    assert not LearnerForm(learners, {}, {"budget": "is -1"}).is_touched


def test_a_number_that_no_message_can_hold_is_refused_with_its_bound() -> None:
    with pytest.raises(
        InvalidInput, match=r"^learner\.rows: is 9{30}, must be one of all, or a whole number in"
    ):
        form(learner__rows="9" * 30).check()
    form(learner__rows="100", learner__reach="none").check()
