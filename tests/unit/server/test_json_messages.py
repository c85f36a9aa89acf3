"""A value in JSON that its field cannot hold is refused with the path of the field, the value and the bound."""

import re
from collections.abc import Iterator

import pytest

from quercus.belief.errors import InvalidInput
from quercus.server.wire.json_messages import JsonMessage
from quercus.v1 import display_pb2, model_pb2

UNSIGNED = "must be a whole number in [0, 4294967295]"
LONG = "must be a whole number in [-9223372036854775808, 9223372036854775807]"
DOUBLE = "must be a number in [-1.7976931348623157e+308, 1.7976931348623157e+308]"
KIND = "must be one of PRUNING_KIND_CHI_SQUARE, PRUNING_KIND_LIKELIHOOD"


def refusal(specification: str) -> str:
    text = f'{{"modelId": "m", "specification": {specification}}}'
    with pytest.raises(InvalidInput) as caught:
        JsonMessage(text.encode()).read_as(model_pb2.CreateModelRequest)
    return str(caught.value).removeprefix("specification.")


def cases() -> Iterator[tuple[str, str]]:
    for value in ("5000000000", "-1", "1.5", "1e400", "NaN", "9" * 40):
        yield f'{{"budget": {value}}}', f"budget: is {value}, {UNSIGNED}"
    yield '{"budget": "5000000000"}', f"budget: is '5000000000', {UNSIGNED}"
    yield '{"alpha": 0.5, "min_instances": -7}', f"min_instances: is -7, {UNSIGNED}"
    for value in ("1e400", "-1e400", "Infinity"):
        yield f'{{"alpha": {value}}}', f"alpha: is {value}, {DOUBLE}"
    yield '{"alpha": NaN}', 'alpha: is NaN, must be written "NaN", for which JSON has no number'
    yield f'{{"alpha": 1{"0" * 400}}}', f"alpha: is 1{'0' * 56}..., {DOUBLE}"
    numeric = '{"attributes": [{"name": "a"}, {"name": "b", "numeric": {%s}}]}'
    yield numeric % '"bins": -3', f"attributes[1].numeric.bins: is -3, {UNSIGNED}"
    yield numeric % '"edges": [1, 1e400]', f"attributes[1].numeric.edges[1]: is 1e400, {DOUBLE}"
    learner = '{"learner": {"name": "x", "parameters": {"depth": {"integer": %s}}}}'
    yield learner % ("9" * 20), f"learner.parameters[depth].integer: is {'9' * 20}, {LONG}"
    for value, said in (('"FOO"', "'FOO'"), ("5000000000", "5000000000"), ("1e400", "1e400")):
        yield f'{{"pruning": {{"kind": {value}}}}}', f"pruning.kind: is {said}, {KIND}"
    yield '{"budget": [5]}', f"budget: is [5], {UNSIGNED}"
    yield numeric % '"edges": [[1, 2]]', f"attributes[1].numeric.edges[0]: is [1, 2], {DOUBLE}"
    yield '{"learner": "abc45"}', "learner: is 'abc45', must be a JSON object"
    yield '{"attributes": [{"name": "a"}, "b"]}', "attributes[1]: is 'b', must be a JSON object"


@pytest.mark.parametrize(("specification", "said"), [*cases()])
def test_what_a_field_cannot_hold_is_named_with_its_bound(specification: str, said: str) -> None:
    assert refusal(specification) == said


def test_the_bound_of_a_short_number_is_its_own() -> None:
    for value in ("1e39", "-1e39", "1e400"):
        with pytest.raises(InvalidInput) as caught:
            JsonMessage(f'{{"values": [0, {value}]}}'.encode()).read_as(display_pb2.DisplaySeries)
        said = "must be a number in [-3.4028234663852886e+38, 3.4028234663852886e+38]"
        assert str(caught.value) == f"values[1]: is {value}, {said}"


def test_a_number_of_thousands_of_digits_is_refused_in_words_for_users() -> None:
    assert refusal(f'{{"budget": {"9" * 5000}}}') == "request: has a whole number of more than 4,300 digits"


@pytest.mark.parametrize(
    "specification", ['{"budget": 1e3}', '{"pruning": {"kind": 7}}', '{"alpha": "1e400"}']
)
def test_what_a_field_can_hold_is_read(specification: str) -> None:
    text = f'{{"specification": {specification}}}'
    assert JsonMessage(text.encode()).read_as(model_pb2.CreateModelRequest).HasField("specification")


@pytest.mark.parametrize(
    ("given", "field"),
    [('"learner": {"parameters": %s}', "learner.parameters"), ('"attributes": %s', "attributes")],
)
def test_no_text_of_a_caller_is_taken_for_a_number_out_of_range(given: str, field: str) -> None:
    said = refusal("{%s}" % (given % '"Value out of range"'))
    assert re.fullmatch(rf"{re.escape(field)}: cannot be read \(.* which is Value out of range\)", said)
