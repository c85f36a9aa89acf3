"""Rows by name cost what they say, not what they leave out."""

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.server.wire.rows import decode_rows
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.storage.records import NewValue
from quercus.v1 import values_pb2

FRAME = Frame(("p", "q"))


class Counted(tuple[AttributeColumn, ...]):
    """Columns that count how often one is looked at."""

    looks = 0

    def __getitem__(self, index: object) -> object:  # type: ignore[override]
        Counted.looks += 1
        return super().__getitem__(index)  # type: ignore[index]

    def __iter__(self) -> object:  # type: ignore[override]
        for column in super().__iter__():
            Counted.looks += 1
            yield column


def named(*rows: dict[str, str | float]) -> values_pb2.Rows:
    def value(given: str | float) -> values_pb2.NamedValue:
        return (
            values_pb2.NamedValue(nominal=given)
            if isinstance(given, str)
            else values_pb2.NamedValue(number=given)
        )

    made = [values_pb2.NamedRow(values={name: value(v) for name, v in row.items()}) for row in rows]
    return values_pb2.Rows(named=values_pb2.NamedRows(rows=made))


def test_empty_rows_of_a_wide_model_are_cheap() -> None:
    Counted.looks = 0
    columns = Counted(AttributeColumn(f"N{k}", None, 0, True) for k in range(1000))
    rows = decode_rows(named(*[{}] * 5000, {"N7": 2.0}), ModelSchema("m", 1, columns, FRAME), learn=True)
    assert rows.values.shape == (5001, 1000)
    assert np.argwhere(~np.isnan(rows.values)).tolist() == [[5000, 7]]
    assert Counted.looks < 10_000


def test_new_values_are_numbered_in_declared_order() -> None:
    columns = (AttributeColumn("B", ("x",), 1, True), AttributeColumn("A", ("x",), 1, True))
    schema = ModelSchema("m", 1, columns, FRAME)
    rows = decode_rows(named({"A": "new", "B": "other"}, {"B": "third", "A": "x"}), schema, learn=True)
    assert rows.new_values == (NewValue(0, 0, "other"), NewValue(1, 0, "new"), NewValue(0, 1, "third"))
    assert rows.values.tolist() == [[1.0, 1.0], [2.0, 0.0]]


def test_a_required_value_that_is_left_out() -> None:
    schema = ModelSchema(
        "m", 1, (AttributeColumn("A", None, 0, True), AttributeColumn("B", None, 0, False)), FRAME
    )
    with pytest.raises(InvalidInput) as caught:
        decode_rows(named({"B": 1.0}, {"A": 1.0}), schema, learn=True)
    assert (caught.value.field, caught.value.reason) == (
        "rows[1].B",
        "is missing, but a missing value is not accepted here",
    )
