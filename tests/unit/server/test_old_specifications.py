"""Models of stores that are older than a parameter of the specification."""

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from quercus.belief.errors import InvalidInput
from quercus.client.algorithms import AlgorithmLike, to_proto
from quercus.server.wire.earlier import stored_specification
from quercus.server.wire.models import complete_specification, decode_specification, updated_specification
from quercus.specification.attributes import Nominal
from quercus.specification.parameters import MODEL_SIGNIFICANCE
from quercus.specification.strategies import MARGIN, RECOMMENDED
from quercus.trees import Abc45, ActiveForest
from quercus.v1 import model_pb2


def specification() -> model_pb2.Specification:
    attribute = model_pb2.Attribute(name="hue", nominal=model_pb2.NominalAttribute(values=["red", "blue"]))
    return complete_specification(model_pb2.Specification(attributes=[attribute], classes=["no", "yes"]))


def test_a_new_model_is_a_forest_and_one_that_names_nothing_in_an_old_store_the_tree() -> None:
    new = specification()
    assert new.algorithm.name == "active-forest"
    assert decode_specification(new).algorithm == ActiveForest()
    new.ClearField("algorithm")
    new.prediction_level, new.strategy = 0.15, "published"
    assert isinstance(decode_specification(new).algorithm, Abc45)


def test_they_keep_their_tree() -> None:
    """Before there was a test, every split stood; a change of something else is no reason to test."""
    old = specification()
    assert old.split_significance == MODEL_SIGNIFICANCE.default
    old.ClearField("split_significance")
    assert decode_specification(old).split_significance == 0.0
    request = model_pb2.UpdateModelRequest(
        specification=model_pb2.Specification(budget=7, split_significance=0.5),
        update_mask=FieldMask(paths=["budget"]),
    )
    assert updated_specification(old, request).split_significance == 0.0
    request.update_mask.paths.append("split_significance")
    changed = updated_specification(old, request)
    assert (changed.budget, changed.split_significance) == (7, 0.5)


def test_a_forest_of_an_old_store_has_the_default_strategy_of_forests() -> None:
    """It had that of trees, which it did not follow; a change of something else is no reason to refuse it now."""
    old = specification()
    assert old.strategy == MARGIN
    old.strategy = RECOMMENDED
    assert decode_specification(old).strategy == MARGIN
    request = model_pb2.UpdateModelRequest(
        specification=model_pb2.Specification(budget=7), update_mask=FieldMask(paths=["budget"])
    )
    assert updated_specification(old, request).strategy == MARGIN
    request.update_mask.paths.append("strategy")
    request.specification.strategy = "memory-disagreement"
    changed = updated_specification(old, request)
    assert changed.strategy == "memory-disagreement"
    request.specification.ClearField("strategy")
    assert updated_specification(changed, request).strategy == MARGIN
    request.specification.strategy = RECOMMENDED
    with pytest.raises(
        InvalidInput, match=r"specification.strategy: is 'covering-committee', must be one of margin"
    ):
        updated_specification(old, request)


def test_an_old_curve_that_is_too_large_to_be_drawn_is_refused_only_where_it_is_given() -> None:
    """Before there was a bound, every finite number was taken; a change of something else is no reason to refuse it."""
    numeric = [model_pb2.Attribute(name=name, numeric=model_pb2.NumericAttribute()) for name in "xy"]
    old = complete_specification(model_pb2.Specification(attributes=numeric, classes=["no", "yes"]))
    old.presentation.series.add(title="t", attributes=["x", "y"], start=1e308)
    request = model_pb2.UpdateModelRequest(
        specification=model_pb2.Specification(budget=7, presentation=old.presentation),
        update_mask=FieldMask(paths=["budget"]),
    )
    assert updated_specification(old, request).presentation == old.presentation
    request.update_mask.paths.append("presentation")
    with pytest.raises(InvalidInput) as caught:
        updated_specification(old, request)
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


def test_an_attribute_of_an_old_store_keeps_its_bound() -> None:
    """It had 1,000 values at most; a change of something else is no change of the attribute."""
    old = specification()
    for attribute in old.attributes:
        attribute.nominal.ClearField("max_values")
        attribute.nominal.ClearField("overflow")
    request = model_pb2.UpdateModelRequest(
        specification=model_pb2.Specification(budget=7), update_mask=FieldMask(paths=["budget"])
    )
    (known,) = decode_specification(old).attributes
    (changed,) = decode_specification(updated_specification(old, request)).attributes
    assert known == changed
    assert isinstance(known, Nominal)
    assert (known.most_values, known.overflow) == (1_000, "bucket")


BASE = {"name": "c45", "min_branch": 1}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("abc45", "0a00"),
        ({"name": "e2m", "informed_only": True}, "12020801"),
        ({"name": "id3", "max_cuts": 7, "significance": 0.05}, "1a0b0807119a9999999999a93f"),
        ({"name": "c45", "max_cuts": 9, "min_branch": 4, "confidence": 0.1}, "220d08091004199a9999999999b93f"),
        ({"name": "c45", "confidence": None}, "2209190000000000000000"),
        ({"name": "averaging", "max_cuts": 300}, "2a0308ac02"),
        (
            {"name": "total-uncertainty", "lam": 0.25, "combine": "mean", "folds": 5, "seed": 2**63 - 1},
            "321709000000000000d03f1002200528ffffffffffffffff7f",
        ),
        ({"name": "belief-entropy", "leaf": "IBE"}, "3a020803"),
        (
            {"name": "forest", "trees": 20, "vote": "mass", "max_features": 3, "seed": 7, "base": BASE},
            "420e0a04220210011014180220033007",
        ),
        ({"name": "forest", "max_features": "half", "base": "averaging"}, "42060a022a002802"),
        ({"name": "forest"}, "4200"),
        ({"name": "active-forest", "trees": 8, "seed": 3}, "4a0408081003"),
    ],
)  # fmt: skip
def test_a_learner_that_had_a_message_of_its_own_is_the_same(given: AlgorithmLike, stored: str) -> None:
    """The bytes are those that the protocol before parameters by name wrote."""
    algorithm = bytes.fromhex(stored)
    head = model_pb2.Specification(classes=["a", "b"]).SerializeToString()
    data = head + bytes([10 << 3 | 2, len(algorithm)]) + algorithm
    found = stored_specification(data)
    assert found == model_pb2.Specification(classes=["a", "b"], algorithm=to_proto(given))
    assert stored_specification(found.SerializeToString()) == found
    assert complete_specification(
        model_pb2.Specification(
            attributes=specification().attributes, classes=["a", "b"], algorithm=found.algorithm
        )
    ).algorithm == to_proto(given)


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
