"""Evidence of a row has the word of its event in the log."""

from typing import Any

import pytest

from quercus.client import Evidence
from quercus.client.results import KIND
from quercus.v1 import instance_pb2


@pytest.mark.parametrize(("number", "kind"), KIND.items())
def test_evidence_has_the_word_of_its_event(number: Any, kind: str) -> None:
    message = instance_pb2.Evidence(kind=number)
    assert Evidence.from_message(message, ("o", "s")).kind == kind


def test_a_kind_that_only_a_later_server_knows() -> None:
    later = instance_pb2.Evidence.FromString(b"\x38\x63")  # field 7 is 99
    assert later.kind == 99
    assert Evidence.from_message(later, ("o", "s")).kind == "unspecified"
