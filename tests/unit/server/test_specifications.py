"""Specifications of models: what a new one gets, and what it may say."""

import pytest

from quercus.belief.errors import InvalidInput
from quercus.client.plugins import to_proto
from quercus.server.wire.models import (
    complete_specification,
    decode_specification,
    retired_setting,
    stored_specification,
    updated_specification,
)
from quercus.specification.learners import has_base, learner_classes
from quercus.specification.plugins import served_parameters
from quercus.specification.strategies import MARGIN, RECOMMENDED, strategies
from quercus.trees import ActiveForest
from quercus.trees.ask.strategies.committee import Committee
from quercus.v1 import model_pb2


def specification() -> model_pb2.Specification:
    attribute = model_pb2.Attribute(name="hue", nominal=model_pb2.NominalAttribute(values=["red", "blue"]))
    return complete_specification(model_pb2.Specification(attributes=[attribute], classes=["no", "yes"]))


def test_a_new_model_is_a_forest_with_its_strategy() -> None:
    new = specification()
    assert (new.learner.name, new.strategy.name) == ("active-forest", MARGIN)
    assert decode_specification(new).learner == ActiveForest()


def test_parameters_of_a_strategy_are_checked_and_kept_as_they_are_declared() -> None:
    new = specification()
    new.learner.CopyFrom(model_pb2.Plugin(name="abc45"))
    new.strategy.CopyFrom(model_pb2.Plugin(name="committee"))
    new.strategy.parameters["cover"].integer = 1
    new.strategy.parameters["explore"].integer = 4
    complete = complete_specification(new)
    assert complete.strategy.parameters["cover"].number == 1.0  # specifications are compared as bytes
    assert decode_specification(complete).strategy == Committee(1.0, 4)
    new.strategy.parameters["explore"].integer = -1
    with pytest.raises(
        InvalidInput, match=r"specification.strategy.explore: is -1, must be a whole number in \[0, "
    ):
        complete_specification(new)
    del new.strategy.parameters["explore"]
    new.strategy.parameters["covers"].integer = 1
    with pytest.raises(
        InvalidInput,
        match=r"specification\.strategy\.covers: is not a parameter of committee; its parameters are cover, explore",
    ):
        complete_specification(new)


@pytest.mark.parametrize("name", sorted(learner_classes()))
def test_every_parameter_is_written_down_so_that_a_model_means_the_same_for_ever(name: str) -> None:
    kind = learner_classes()[name]
    new = specification()
    new.learner.CopyFrom(model_pb2.Plugin(name=name))
    new.ClearField("prediction_level")
    new.ClearField("min_instances")
    for strategy in strategies(kind.asks).values():
        new.strategy.CopyFrom(model_pb2.Plugin(name=strategy.name))
        told = complete_specification(new)
        assert set(told.learner.parameters) == {each.name for each in served_parameters(kind)}
        assert set(told.strategy.parameters) == {each.name for each in served_parameters(strategy)}
        assert told.learner.HasField("base") == has_base(kind)
        without = model_pb2.Specification()
        without.CopyFrom(told)
        without.learner.CopyFrom(new.learner)
        without.strategy.CopyFrom(new.strategy)
        assert decode_specification(told) == decode_specification(without)
        assert complete_specification(told) == told


def test_a_specification_stored_without_defaults_is_read_with_those_of_today() -> None:
    new = specification()
    earlier = model_pb2.Specification()
    earlier.CopyFrom(new)
    earlier.learner.CopyFrom(model_pb2.Plugin(name=new.learner.name))
    earlier.strategy.CopyFrom(model_pb2.Plugin(name=new.strategy.name))
    assert stored_specification(earlier.SerializeToString()) == new
    earlier.strategy.CopyFrom(model_pb2.Plugin(name="gone", package="acme 2.1"))
    assert stored_specification(earlier.SerializeToString()).strategy == earlier.strategy


def test_the_parameters_of_a_strategy_change_with_it() -> None:
    current = specification()
    current.learner.CopyFrom(model_pb2.Plugin(name="abc45"))
    current.strategy.CopyFrom(to_proto({"name": "committee", "cover": 0.1, "explore": 3}, "strategy"))
    request = model_pb2.UpdateModelRequest()
    request.update_mask.paths.append("strategy")
    request.specification.strategy.CopyFrom(to_proto({"name": "committee", "cover": 0.2}, "strategy"))
    after = updated_specification(current, request)
    assert decode_specification(after).strategy == Committee(0.2)
    request.specification.ClearField("strategy")
    assert updated_specification(current, request).strategy.name == RECOMMENDED


@pytest.mark.parametrize(("package", "more"), [("", b""), ("acme 2.1", b"\x82\x01\x08acme 2.1")])
def test_a_specification_stored_before_strategies_had_parameters_is_read(package: str, more: bytes) -> None:
    stored = specification()
    stored.ClearField("strategy")
    earlier = stored.SerializeToString() + b"\x42\x13memory-disagreement" + more
    read = stored_specification(earlier)
    assert (read.strategy.name, read.strategy.package) == ("memory-disagreement", package)
    assert decode_specification(read).strategy.name == "memory-disagreement"


@pytest.mark.parametrize("ask", ["to-the-budget", "while-contested"])
def test_a_specification_that_says_when_queries_stop_is_read_without_it(ask: str) -> None:
    new = specification()
    earlier = new.SerializeToString() + bytes([14 << 3 | 2, len(ask)]) + ask.encode()
    assert stored_specification(earlier).SerializeToString() == new.SerializeToString()
    said = "ask was while-contested, which is not offered any more; it now asks up to its budget"
    assert retired_setting(earlier) == ("" if ask == "to-the-budget" else said)
    assert retired_setting(new.SerializeToString()) == ""


def test_a_curve_that_is_too_large_to_be_drawn_is_refused() -> None:
    numeric = [model_pb2.Attribute(name=name, numeric=model_pb2.NumericAttribute()) for name in "xy"]
    new = model_pb2.Specification(attributes=numeric, classes=["no", "yes"])
    new.presentation.series.add(title="t", attributes=["x", "y"], start=1e308)
    with pytest.raises(InvalidInput) as caught:
        complete_specification(new)
    assert str(caught.value) == (
        "specification.presentation.series[0].start: leads to 1e+308, must lead to numbers in [-1e100, 1e100]"
    )


def test_a_strategy_of_trees_for_a_new_forest_is_an_error() -> None:
    new = specification()
    for strategy in (RECOMMENDED, "published"):
        new.strategy.name = strategy
        with pytest.raises(
            InvalidInput, match=f"specification.strategy.name: is '{strategy}', must be one of margin, "
        ):
            complete_specification(new)


def test_values_have_their_declared_types_whatever_was_sent() -> None:
    """Specifications are compared as bytes."""
    sent = model_pb2.Plugin(name="id3")
    sent.parameters["significance"].integer = 1
    with pytest.raises(InvalidInput, match=r"specification.learner.significance: is 1, must lie in \(0, 1\)"):
        complete_specification(model_pb2.Specification(learner=sent))
    sent = model_pb2.Plugin(name="total-uncertainty")
    sent.parameters["lam"].integer = 1
    new = specification()
    new.learner.CopyFrom(sent)
    new.ClearField("strategy")
    new.ClearField("prediction_level")
    assert complete_specification(new).learner.parameters["lam"].number == 1.0
    sent.parameters["lame"].number = 1.0
    new.learner.CopyFrom(sent)
    with pytest.raises(
        InvalidInput, match=r"specification.learner.lame: is not a parameter of total-uncertainty"
    ):
        complete_specification(new)
    sent = model_pb2.Plugin(name="c45", base=model_pb2.Plugin(name="id3"))
    new.learner.CopyFrom(sent)
    with pytest.raises(InvalidInput, match=r"specification.learner.base.name: is 'id3', but c45 has no base"):
        complete_specification(new)
