"""Messages of a broker as rows: what they may be."""

import pytest

from quercus.client.bridges.messages import BadMessageError, MessageFormat

FORM = MessageFormat(label_field="class", ignored={"time"})


def test_an_object_is_a_row_and_a_list_several() -> None:
    (row,) = FORM.rows(
        b'{"id": 7, "hue": "red", "size": 2, "on": true, "ash": null, "time": [1], "class": "o"}', "m"
    )
    assert (row.id, row.label) == ("7", "o")
    assert row.values == {"hue": "red", "size": 2, "on": True, "ash": None}
    first, second = FORM.rows(b'[{"size": 1}, {"size": 1}]', "m")
    assert first.values == second.values == {"size": 1.0}
    assert (first.id, second.id) == ("m", "m-1")


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"\xff", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "has 0 rows"),
        (b"7", "must be an object"),
        (b'[{"a": 1}, 2]', "must be an object"),
        (b'{"a": {"b": 1}}', "a is dict"),
        (b'{"a": {"low": 1, "high": ' + b"9" * 400 + b"}}", "a is dict"),
        (b'{"id": 1.5}', "must be text or a whole number"),
        (b'{"a": ' + b"9" * 400 + b"}", "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"id": "\\ud800"}', "half of a surrogate pair"),
        (b'{"\\udc00": 1}', "half of a surrogate pair"),
    ],
)
def test_what_is_no_row(payload: bytes, said: str) -> None:
    """A fault of the message is raised, one of a row stands in its place."""
    try:
        found = FORM.rows(payload, "m")
    except BadMessageError as error:
        found = [error]
    (fault,) = (each for each in found if isinstance(each, BadMessageError))
    assert said in str(fault)
