"""A value in JSON that its field cannot hold is refused with the path of the field, the value and the bound."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from quercus.belief.errors import InvalidInput
from quercus.server.wire.json_messages import JsonMessage
from quercus.v1 import admin_pb2, classify_pb2, display_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2

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
    edge = "attributes[1].numeric.edges[0]: is"
    for value, said in (('"abc45"', "'abc45'"), ('""', "''"), ("[]", "[]"), ("[ ]", "[]"), ("1", "1")):
        yield (
            f'{{"learner": {value}}}',
            f"learner: is {said}, must be a JSON object with name, parameters, base, package",
        )
    attribute = "must be a JSON object with name, nominal, numeric, missing"
    yield '{"attributes": [{"name": "a"}, "b"]}', f"attributes[1]: is 'b', {attribute}"
    yield '{"attributes": [{"name": "a"}, ""]}', f"attributes[1]: is '', {attribute}"
    yield '{"attributes": [null]}', f"attributes[0]: is null, {attribute}"
    yield '{"attributes": "b"}', "attributes: is 'b', must be a JSON list"
    yield '{"learner": {"parameters": [1]}}', "learner.parameters: is [1], must be a JSON object"
    for value, said in (('"x"', "'x'"), ('""', "''"), ('"1.5"', "'1.5'"), ("true", "true"), ("{}", "{}")):
        yield f'{{"budget": {value}}}', f"budget: is {said}, {UNSIGNED}"
    yield '{"classes": [1]}', "classes[0]: is 1, must be a text"
    yield (
        numeric % '"edges": [null]',
        f'{edge} null, must be a number, or "NaN" if it is missing',
    )
    yield numeric % '"edges": ["x"]', f"{edge} 'x', {DOUBLE}"
    yield (
        '{"minInstances": 1, "min_instances": 2}',
        "min_instances: is given beside minInstances: give one of them",
    )
    yield '{"pruning": {"kind": [1]}}', f"pruning.kind: is [1], {KIND}"
    half = "half of a surrogate pair"
    yield r'{"classes": ["\ud800"]}', rf"classes[0]: is '\ud800', must be a text without {half}"
    yield r'{"pruning": {"kind": "\ud800"}}', rf"pruning.kind: is '\ud800', {KIND}"
    parameters = "learner.parameters"
    yield r'{"learner": {"parameters": {"\ud800": {}}}}', rf"{parameters}[\ud800]: has {half} in its name"
    long = '{"learner": {"parameters": {"%s": {"list": {"values": [1]}}}}}'
    fields = "must be a JSON object with boolean, integer, unsigned, number, text, list"
    yield long % ("k" * 1_000), f"{parameters}[{'k' * 60}].list.values[0]: is 1, {fields}"


def test_keys_are_short_and_differ() -> None:
    """The parser writes the place of every value, which takes half a minute for 4,000 values within a key of 4 MB."""
    parameters = '{"learner": {"parameters": {%s}}}'
    allowed = f"'{'k' * 56}... of 1,001 characters, at most 1,000 are allowed"
    assert refusal(parameters % f'"{"k" * 1_001}": {{}}') == f"request: has a key {allowed}"
    twice = '"a": {"text": "x"}, "b": {}, "a": {}'
    assert refusal(parameters % twice) == "request: has a duplicate key 'a' in an object"


def test_a_name_that_no_encoding_holds_is_refused_in_words_that_can_be_sent() -> None:
    with pytest.raises(InvalidInput) as caught:
        JsonMessage(rb'{"na\ud800": 1}').read_as(model_pb2.GetModelRequest)
    assert str(caught.value) == r"na\ud800: is not a field of GetModelRequest, which has name"


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


VALUES = (
    "", "x", "1", "1.5", "1e3", " 1", "nan", "NaN", "Infinity", "1s", "2026-11-28T12:00:00Z", "name", "\ud800",
    "9" * 30, 0, 1, -1, 1.0, 1.5, 2**31, 2**63, 2**64, 10**400, True, False, None, [], {}, [1], [[]],
    {"name": 1}, {"unknown": 1},
)  # fmt: skip


def requests() -> list[type[Message]]:
    """All messages that callers may send, and those within them."""
    found: dict[str, Descriptor] = {}

    def add(kind: Descriptor) -> None:
        if kind.full_name not in found and not kind.full_name.startswith("google."):
            found[kind.full_name] = kind
            for field in kind.fields:
                if field.message_type is not None:
                    add(field.message_type)

    for file in (admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2):
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                add(method.input_type)
    return [GetMessageClass(each) for each in found.values() if not each.GetOptions().map_entry]


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.DESCRIPTOR.name) for kind in requests()])
def test_values_are_refused_in_words_where_the_parser_refuses_them(kind: type[Message]) -> None:
    """Beside them, an empty text or list for an object, which the parser takes for one without fields."""
    for field in kind.DESCRIPTOR.fields:
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        given = [*VALUES, *([value] for value in VALUES), *({"key": value} for value in VALUES if is_map)]
        for value in given:
            text = json.dumps({field.json_name: value})
            by_parser, _ = outcome(lambda text=text: json_format.Parse(text, kind()))
            read, said = outcome(lambda text=text: JsonMessage(text.encode()).read_as(kind))
            assert "cannot be read" not in said, text
            is_empty = re.search(r"is (''|\[\]), must be a JSON object", said) is not None
            assert read == (None if is_empty else by_parser), text


def outcome(read: Callable[[], Message]) -> tuple[Message | None, str]:
    """Return what is read, or why nothing is."""
    try:
        return read(), ""
    except (json_format.ParseError, InvalidInput, TypeError) as error:
        return None, str(error)
