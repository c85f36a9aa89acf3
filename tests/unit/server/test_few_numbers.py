"""A few rows are converted without arrays: the result is that of many rows, and so is every refusal."""

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.server.wire.labels import decode_labels
from quercus.server.wire.limits import FEW_NUMBERS, MessageLimits
from quercus.server.wire.rows import ONE_THREAD, decode_rows
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.v1 import values_pb2

FRAME = Frame(("p", "q", "r"))
SCHEMA = ModelSchema(
    "m", 1, (AttributeColumn("N", None, 0, True), AttributeColumn("C", ("x", "y"), 2, False)), FRAME
)
MANY = (FEW_NUMBERS, ONE_THREAD)  # rows: more numbers than are looked at one by one, or multiplied by numpy

ROWS = [
    (0.5, 1.0),
    (-0.0, 0.0),
    (1e308, -0.0),
    (np.nan, 1.0),
    (np.inf, 0.0),
    (0.5, np.nan),
    (0.5, 2.0),
    (0.5, -1.0),
]
ROWS += [(0.5, 0.5), (1e308, np.inf)]
CONTOURS = [(1.0, 0.0, 0.25), (1.0, -0.0, 0.0), (0.0, -0.0, 0.0), (1.5, 1.0, 0.0), (1.0, -0.1, 0.0)]
CONTOURS += [
    (1.0, np.nan, 0.0),
    (np.nan, 1.0, 0.0),
    (1.0, np.inf, 0.0),
    (0.5, 1.0, np.nan),
    (np.nan, np.inf, 1.0),
]


def rows_of(row: tuple[float, ...], count: int) -> bytes | str:
    packed = values_pb2.Rows(packed=values_pb2.PackedRows(values=row * count))
    try:
        return decode_rows(packed, SCHEMA, learn=True).values[0].tobytes()
    except InvalidInput as error:
        return str(error)


def labels_of(contour: tuple[float, ...], count: int) -> bytes | str:
    contours = values_pb2.PackedContours(plausibilities=contour * count)
    try:
        return decode_labels(values_pb2.Labels(contours=contours), count, FRAME)[0]
    except InvalidInput as error:
        return str(error)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_what_it_is_among_many(row: tuple[float, ...]) -> None:
    assert {rows_of(row, 1)} == {rows_of(row, count) for count in MANY}


@pytest.mark.parametrize("contour", CONTOURS)
def test_a_label_is_what_it_is_among_many(contour: tuple[float, ...]) -> None:
    assert {labels_of(contour, 1)} == {labels_of(contour, count) for count in MANY}


def test_both_kinds_of_outcome_were_compared() -> None:
    assert [type(rows_of(row, 1)) for row in ROWS] == [bytes] * 4 + [str] * 6
    assert [type(labels_of(contour, 1)) for contour in CONTOURS] == [bytes] * 2 + [str] * 8


@pytest.mark.parametrize(("values", "said"), [((), "has 0 rows"), ((1.0, 0.0, 1.0), "has 3 values")])
def test_a_wrong_number_of_values_is_named(values: tuple[float, ...], said: str) -> None:
    packed = values_pb2.Rows(packed=values_pb2.PackedRows(values=values))
    with pytest.raises(InvalidInput, match=said):
        decode_rows(packed, SCHEMA, learn=True)


def test_rows_are_counted_before_they_are_read() -> None:
    packed = values_pb2.Rows(packed=values_pb2.PackedRows(values=(0.5, 1.0) * 3))
    with pytest.raises(InvalidInput, match="has 3 rows, must have 1 to 2"):
        decode_rows(packed, SCHEMA, learn=True, sizes=MessageLimits(max_batch_rows=2))
