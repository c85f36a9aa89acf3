"""Ids: what they may hold, and their form in resource names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.errors import InvalidInput
from quercus.specification.names import CONTROLS, are_ids, check_id, decode_id, encode_id

IDS = [
    ("images/2026/01/a.jpg", "images%2F2026%2F01%2Fa.jpg"),
    ("s3://bucket/key", "s3:%2F%2Fbucket%2Fkey"),
    ("https://example.org/x?a=b#c", "https:%2F%2Fexample.org%2Fx%3Fa=b%23c"),
    ("SUP/2026-0001", "SUP%2F2026-0001"),
    ("\N{WOMAN}\u200d\N{MICROSCOPE}", "%F0%9F%91%A9%E2%80%8D%F0%9F%94%AC"),
    ("a b", "a%20b"),
    ("50%", "50%25"),
    ("2026-01-01T00:00:00", "2026-01-01T00:00:00"),
]


@pytest.mark.parametrize(("text", "segment"), IDS)
def test_an_id_is_percent_encoded_as_a_segment_of_a_path(text: str, segment: str) -> None:
    assert are_ids([text])
    assert check_id(text, "ids[0]") == text
    assert encode_id(text) == segment
    assert decode_id(segment, "name") == text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_any_id_comes_back_from_its_name(text: str) -> None:
    assert decode_id(encode_id(text), "name") == text
    assert "/" not in encode_id(text)
    assert are_ids([text]) == (CONTROLS.search(text) is None)


@pytest.mark.parametrize(
    "text", ["", "a\nb", "x" * 201, "a\u2028", "\u202eb", "a\u200f", "a\x1b[2J", "\ud800"]
)
def test_bad_ids(text: str) -> None:
    assert not are_ids(["good", text])
    with pytest.raises(InvalidInput, match=r"^ids\[3\]: has "):
        check_id(text, "ids[3]")


def test_many_ids_at_once() -> None:
    for good in ([], ["a"], ["a:b c.d", "é", "x" * 200], ["a", "b", "a"]):
        assert are_ids(good)


@pytest.mark.parametrize("segment", ["%", "50%", "%2", "%zz", "%ff"])
def test_a_segment_that_is_not_encoded(segment: str) -> None:
    with pytest.raises(InvalidInput, match="percent-encoded"):
        decode_id(segment, "name")
