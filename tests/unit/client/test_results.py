"""Results of the client are derived from messages: what is documented, what is None, what is left out."""

import re
from dataclasses import fields

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from quercus.client import LabellingPolicy, Lease, Model, Query, Status, results
from quercus.client.generate_results import Protocol, result_source
from quercus.client.messages import message_of
from quercus.server.wire.reports import other_names_in
from quercus.v1 import admin_pb2, model_pb2, options_pb2, query_pb2

RESULTS = [each for each in vars(results).values() if getattr(each, "__module__", "") == results.__name__]


@pytest.mark.parametrize("result", [each for each in RESULTS if hasattr(each, "from_message")])
def test_every_field_is_documented(result: type) -> None:
    head, _, described = (result.__doc__ or "").partition("    Attributes\n    ----------\n")
    assert re.match(r"[^\n]+\.\n\n", head)
    found = re.findall(r"^    (\w+)\n((?:        .*\n)+)", described, re.MULTILINE)
    assert [name for name, _ in found] == [each.name for each in fields(result)]  # type: ignore[arg-type]
    assert all(text.rstrip().endswith(".") for _, text in found)


QUERY = query_pb2.Query(name="models/m/queries/7", instance="models/m/instances/a%2Fb", lease_token="secret")


def test_what_is_unset_is_none() -> None:
    query = Query.from_message(QUERY)
    assert (query.model, query.number, query.instance) == ("m", 7, "a/b")
    assert (query.place, query.expires_at, query.left_s) == (None, None, None)
    message = query_pb2.Query(place=0)
    message.lease_left.FromMilliseconds(1500)
    message.MergeFrom(QUERY)
    query = Query.from_message(message)
    assert (query.place, query.left_s) == (0, 1.5)
    assert Lease.from_message(query_pb2.LeaseQueriesResponse(queries=[QUERY])).idle is None
    assert "secret" not in repr(query)
    assert query.lease_token == "secret"


def test_the_parts_of_a_message_are_fields_of_its_result() -> None:
    grower = admin_pb2.GrowerStatus(state=admin_pb2.GrowerStatus.STATE_SILENT, restarts=2, at="wine")
    status = Status.from_message(
        admin_pb2.GetStatusResponse(grower=grower, damaged={"b": "head", "a": "log"})
    )
    assert (status.grower, status.grower_at, status.grower_restarts, status.grower_pid) == (
        "silent",
        "wine",
        2,
        None,
    )
    assert list(status.damaged.items()) == [("a", "log"), ("b", "head")]


@pytest.mark.parametrize(
    "policy",
    [
        LabellingPolicy(),
        LabellingPolicy(2, 0.0, "estimated", 5, 0, 9, "nobody", ("a", "b")),
    ],
)
def test_a_policy_comes_back_as_it_was_sent(policy: LabellingPolicy) -> None:
    assert LabellingPolicy.from_message(message_of(query_pb2.LabellingPolicy, policy)) == policy


def test_names_beyond_the_bound_in_a_store_of_before() -> None:
    """A report that was written when these were messages of attribute and rows."""
    stored = bytes.fromhex("100122050a0141101022050a0142100f")
    assert other_names_in(stored) == 31
    report = model_pb2.GrowthReport.FromString(stored)
    model = Model.from_message(model_pb2.Model(name="models/m", other_names=report.other_names))
    assert model.other_names == {"A": 16, "B": 15}


def declared(comment: str, **field: object) -> Protocol:
    """A protocol of one message with one field, an integer."""
    file = FileDescriptorProto(name="a.proto", package="a", syntax="proto3")
    message = file.message_type.add(name="Thing")
    message.options.Extensions[options_pb2.result].name = "Result"
    message.field.add(name="lag", number=1, type=5, label=1, **field)
    for path, text in ([4, 0], " A thing.\n"), ([4, 0, 2, 0], comment):
        file.source_code_info.location.add(path=path, leading_comments=text)
    return Protocol([file])


def source(protocol: Protocol) -> str:
    (message,) = protocol.results.values()
    return result_source(protocol, message)


def test_a_field_is_what_the_protocol_declares() -> None:
    plain = source(declared(" Steps\n behind `log`.\n"))
    assert 'class Result:\n    """A thing.\n' in plain
    assert "    lag\n        Steps behind ``log``.\n" in plain
    assert "    lag: int\n" in plain
    assert "return cls(message.lag)" in plain
    optional = source(declared(" Absent if unknown.", proto3_optional=True))
    assert "``None`` if unknown." in optional
    assert "lag: int | None\n" in optional
    assert 'cls(message.lag if message.HasField("lag") else None)' in optional


def test_a_message_without_a_result_cannot_be_shown() -> None:
    file = FileDescriptorProto(name="a.proto", package="a", syntax="proto3")
    file.message_type.add(name="Part")
    whole = file.message_type.add(name="Whole")
    whole.options.Extensions[options_pb2.result].SetInParent()
    whole.field.add(name="part", number=1, type=11, label=1, type_name=".a.Part")
    with pytest.raises(ValueError, match=r"\.a\.Part of part has neither a result nor a form"):
        source(Protocol([file]))
