"""Evidence of a row has the word of its event in the log."""

import pytest

from quercus.client import convert
from quercus.client.events import KINDS
from quercus.v1 import instance_pb2

Kind = instance_pb2.Evidence.Kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (instance_pb2.Evidence(), "instance"),
        (instance_pb2.Evidence(query="models/m/queries/3"), "answer"),
        (instance_pb2.Evidence(query="models/m/queries/3", refused=True), "refusal"),
        *((instance_pb2.Evidence(kind=n), name[5:].lower()) for name, n in Kind.items() if n),
    ],
)
def test_evidence_has_the_word_of_its_event(message: instance_pb2.Evidence, kind: str) -> None:
    assert convert.evidence_from_proto(message, ("o", "s")).kind == kind
    assert kind in KINDS


def test_a_kind_that_only_a_later_server_knows() -> None:
    later = instance_pb2.Evidence.FromString(b"\x38\x63")  # field 7 is 99
    assert later.kind == 99
    assert convert.evidence_from_proto(later, ("o", "s")).kind == "unspecified"
