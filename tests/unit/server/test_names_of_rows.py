"""Names of nominal values on the wire: found in any spelling, and learned alike whatever the batches."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.frame import Frame
from quercus.server.wire.rows import decode_rows
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.v1 import values_pb2

TEXTS = [
    "true",
    "TRUE",
    "True",
    "false",
    "False",
    " true",
    "maybe",
    "Maybe",
    "101",
    "101.0",
    "1.10",
    "e\u0301",
    "\u00e9",
    "?",
    "",
]


def schema(declared: tuple[str, ...], learned: list[str]) -> ModelSchema:
    column = AttributeColumn("x", (*declared, *learned), len(declared), missing=True)
    return ModelSchema("m", 1, (column,), Frame(("a", "b")))


def pushed(declared: tuple[str, ...], batches: list[list[str]]) -> tuple[list[str], list[str | None]]:
    """Return the names that are learned from batches of texts, and the name of each text."""
    learned: list[str] = []
    found: list[str | None] = []
    for batch in batches:
        rows = [values_pb2.NamedRow(values={"x": values_pb2.NamedValue(nominal=text)}) for text in batch]
        message = values_pb2.Rows(named=values_pb2.NamedRows(rows=rows))
        decoded = decode_rows(message, schema(declared, learned), learn=True)
        learned += [new.value for new in decoded.new_values]
        names = [*declared, *learned]
        found += [None if math.isnan(code) else names[int(code)] for code in decoded.values[:, 0].tolist()]
    return learned, found


@given(
    st.sampled_from([(), ("true", "false"), ("True",), ("maybe",), ("101",), ("?",)]),
    st.lists(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6), min_size=1, max_size=5),
)
def test_a_stream_teaches_the_same_names_in_any_batches(
    declared: tuple[str, ...], batches: list[list[str]]
) -> None:
    together = pushed(declared, [[text for batch in batches for text in batch]])
    alone = pushed(declared, [[text] for batch in batches for text in batch])
    assert pushed(declared, batches) == together == alone


@pytest.mark.parametrize("names", [("True", "False"), ("101.0", " red ", "e\u0301")])
def test_a_model_of_an_earlier_store_keeps_its_names_and_finds_them(names: tuple[str, ...]) -> None:
    wanted = {"True": "true", "False": "FALSE", "101.0": "101", " red ": "red", "e\u0301": "\u00e9"}
    learned, found = pushed(names, [[wanted[name] for name in names], list(names)])
    assert (learned, found) == ([], [*names, *names])


def test_numbers_name_values_and_text_may_be_a_number() -> None:
    columns = (
        AttributeColumn("code", ("101", "2.5"), 2, missing=True),
        AttributeColumn("at", None, 0, missing=True),
    )
    row = values_pb2.NamedRow()
    row.values["code"].number = 101.0
    row.values["at"].nominal = "1970-01-02"
    rows = values_pb2.Rows(named=values_pb2.NamedRows(rows=[row]))
    decoded = decode_rows(rows, ModelSchema("m", 1, columns, Frame(("a", "b"))), learn=False)
    assert decoded.values.tolist() == [[0.0, 86400.0]]
