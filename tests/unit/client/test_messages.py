"""A value that no field of a message can hold is refused in words, before anything is sent."""

import ast
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

import quercus.client
from quercus.client import Client, InvalidArgument, LabellingPolicy, Nominal, Specification
from quercus.client.messages import filled
from quercus.v1 import admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2

MODULES = (admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2)
WRONG = {
    FieldDescriptor.CPPTYPE_INT32: (2**31, -(2**31) - 1, 99999999999, 0.5, "x"),
    FieldDescriptor.CPPTYPE_INT64: (2**63, -(2**63) - 1, 10**400, "x"),
    FieldDescriptor.CPPTYPE_UINT32: (-1, 2**32),
    FieldDescriptor.CPPTYPE_UINT64: (-1, 2**64),
    FieldDescriptor.CPPTYPE_DOUBLE: ("x", 10**400),
    FieldDescriptor.CPPTYPE_STRING: ("\ud800", 7),
}
FIELDS = [
    (message, field)
    for module in MODULES
    for message in module.DESCRIPTOR.message_types_by_name.values()
    for field in message.fields
    if field.cpp_type in WRONG
]


@pytest.mark.parametrize(("message", "field"), FIELDS, ids=lambda each: each.name)
def test_every_field_refuses_what_it_cannot_hold(message, field) -> None:
    for value in WRONG[field.cpp_type]:
        with pytest.raises(InvalidArgument) as refused:
            filled(GetMessageClass(message), **{field.name: [value] if field.is_repeated else value})
        (violation,) = refused.value.violations
        assert violation.field == (f"{field.name}[0]" if field.is_repeated else field.name)
        assert violation.reason.startswith("is ")
        assert "must be" in violation.reason


def test_every_request_of_the_client_is_filled_there() -> None:
    """A request that is made otherwise would raise what protobuf raises."""
    for file in Path(quercus.client.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                made, given = node.func.attr, node.args or node.keywords
                assert not (made.endswith("Request") and given), f"{file.name}:{node.lineno}: {made}"


BIG = 99999999999


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda client: client.tree("m", member=BIG), "member"),
        (lambda client: client.render("m", "text", member=BIG), "member"),
        (lambda client: client.render("m", "text", depth=BIG), "depth"),
        (lambda client: client.set_labelling_policy("m", LabellingPolicy(max_held=BIG)), "max_held"),
        (
            lambda client: client.set_labelling_policy("m", LabellingPolicy(answers_per_query=BIG)),
            "answers_per_query",
        ),
        (lambda client: client.set_labelling_policy("m", LabellingPolicy(per_hour=2**64)), "per_hour"),
        (lambda client: client.update_model("m", budget=2**70), "budget"),
        (lambda client: client.update_model("m", max_depth=BIG), "max_depth"),
        (lambda client: list(client.watch_events("m", after=2**70)), "after_sequence"),
        (
            lambda client: client.create_model(
                "m", Specification([Nominal("x", ("a",))], ("a", "b"), budget=2**70)
            ),
            "budget",
        ),
    ],
)
def test_calls_name_the_field(call, field: str) -> None:
    with (
        Client("127.0.0.1:9", timeout_s=1.0) as client,
        pytest.raises(InvalidArgument, match="must be") as refused,
    ):
        call(client)
    assert refused.value.violations[0].field.endswith(field)
