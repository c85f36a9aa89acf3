"""Specifications of models: what a new one gets, and what it may say."""

import pytest

from quercus.belief.errors import InvalidInput
from quercus.server.wire.models import complete_specification, decode_specification
from quercus.specification.strategies import MARGIN, RECOMMENDED
from quercus.trees import ActiveForest
from quercus.v1 import model_pb2


def specification() -> model_pb2.Specification:
    attribute = model_pb2.Attribute(name="hue", nominal=model_pb2.NominalAttribute(values=["red", "blue"]))
    return complete_specification(model_pb2.Specification(attributes=[attribute], classes=["no", "yes"]))


def test_a_new_model_is_a_forest_with_its_strategy() -> None:
    new = specification()
    assert (new.algorithm.name, new.strategy) == ("active-forest", MARGIN)
    assert decode_specification(new).algorithm == ActiveForest()


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
        new.strategy = strategy
        with pytest.raises(
            InvalidInput, match=f"specification.strategy: is '{strategy}', must be one of margin, "
        ):
            complete_specification(new)


def test_values_have_their_declared_types_whatever_was_sent() -> None:
    """Specifications are compared as bytes."""
    sent = model_pb2.Algorithm(name="id3")
    sent.parameters["significance"].integer = 1
    with pytest.raises(
        InvalidInput, match=r"specification.algorithm.significance: is 1, must lie in \(0, 1\)"
    ):
        complete_specification(model_pb2.Specification(algorithm=sent))
    sent = model_pb2.Algorithm(name="total-uncertainty")
    sent.parameters["lam"].integer = 1
    new = specification()
    new.algorithm.CopyFrom(sent)
    new.ClearField("strategy")
    new.ClearField("prediction_level")
    assert complete_specification(new).algorithm.parameters["lam"].number == 1.0
    sent.parameters["lame"].number = 1.0
    new.algorithm.CopyFrom(sent)
    with pytest.raises(
        InvalidInput, match=r"specification.algorithm.lame: is not a parameter of total-uncertainty"
    ):
        complete_specification(new)
    sent = model_pb2.Algorithm(name="c45", base=model_pb2.Algorithm(name="id3"))
    new.algorithm.CopyFrom(sent)
    with pytest.raises(
        InvalidInput, match=r"specification.algorithm.base.name: is 'id3', but c45 has no base"
    ):
        complete_specification(new)
