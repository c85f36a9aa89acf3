"""Rows in every form become the same packed numbers; what cannot be packed travels by name or is refused."""

import datetime
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quercus.client import InvalidArgument, Nominal, Numeric, Specification
from quercus.client.frames import frame_of
from quercus.client.rows import Chunk, RowEncoder, row_chunks

SPECIFICATION = Specification([Nominal("colour", ["red", "blue"]), Numeric("size")], ["a", "b"])
ENCODER = RowEncoder(SPECIFICATION)
PACKED = [1.0, 2.5, math.nan, 3.0, 0.0, math.nan]


class OfAnotherLibrary:
    """Speaks the C interface of Arrow, and nothing else."""

    def __init__(self, columns: object) -> None:
        self.held = pa.table(columns) if isinstance(columns, dict) else pa.chunked_array([columns])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.held.__arrow_c_stream__(requested_schema)


def packed(rows: object) -> list[float]:
    (chunk,) = row_chunks(rows, 100)
    message, unknown = ENCODER.encode(chunk)
    assert not unknown
    return list(message.packed.values)


@pytest.mark.parametrize(
    "rows",
    [
        [{"colour": "blue", "size": 2.5}, {"size": 3}, {"colour": "red", "size": None}],
        [["blue", 2.5], (None, np.int64(3)), ["red", math.nan]],
        np.array([["blue", 2.5], [None, 3.0], ["red", None]], dtype=object),
        np.array([[1.0, 2.5], [math.nan, 3.0], [0.0, math.nan]]),
        pd.DataFrame({"size": [2.5, 3.0, None], "other": 1, "colour": ["blue", None, "red"]}),
        pd.DataFrame({"size": pd.array([2.5, 3, None], dtype="Float64"), "colour": ["blue", pd.NA, "red"]}),
        pd.DataFrame({"size": [2.5, 3.0, None], "colour": pd.Categorical(["blue", None, "red"])}),
        np.array([["blue", "2.5"], ["?", "3"], ["red", "?"]]),
        pl.DataFrame({"size": [2.5, 3.0, None], "other": 1, "colour": ["blue", None, "red"]}),
        pl.DataFrame(
            {"size": pl.Series([2.5, 3, None], dtype=pl.Float32), "colour": ["blue", None, "red"]}
        ).cast({"colour": pl.Categorical}),
        pa.table({"size": [2.5, 3.0, None], "colour": pa.array(["blue", None, "red"]).dictionary_encode()}),
        pa.record_batch({"size": [2.5, 3.0, None], "colour": ["blue", None, "red"]}),
        OfAnotherLibrary({"size": [2.5, 3.0, None], "colour": ["blue", None, "red"]}),
    ],
    ids=[
        "dicts",
        "sequences",
        "objects",
        "numbers",
        "frame",
        "nullable frame",
        "categorical frame",
        "texts",
        "polars",
        "categorical polars",
        "arrow",
        "arrow batch",
        "arrow stream",
    ],
)
def test_every_form_gives_the_same_numbers(rows: object) -> None:
    np.testing.assert_array_equal(packed(rows), PACKED)


def test_a_reader_of_arrow_is_read_batch_by_batch() -> None:
    """Also where it would not find room in memory."""
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for k in range(3):
            taken.append(k)
            yield pa.record_batch({"size": [k + 0.25, k + 0.5, k + 0.75]})

    chunks = row_chunks(pa.RecordBatchReader.from_batches(pa.schema({"size": pa.float64()}), batches()), 2)
    first = next(chunks)
    assert (first.start, first.rows["size"].to_list(), taken) == (0, [0.25, 0.5], [0])
    assert [(each.start, each.size) for each in chunks] == [(2, 1), (3, 2), (5, 1), (6, 2), (8, 1)]


def test_one_column_of_arrow_is_no_table() -> None:
    """Labels may be given so."""
    for column in (
        pa.chunked_array([["a", "b"]]),
        pa.array(["a", "b"]),
        pl.Series(["a", "b"]),
        pd.Series(["a"]),
    ):
        assert frame_of(column) is None
    with pytest.raises(InvalidArgument, match="rows: a OfAnotherLibrary is not an Arrow table"):
        list(row_chunks(OfAnotherLibrary([1.0]), 2))


def test_integers_are_the_text_of_nominal_values() -> None:
    encoder = RowEncoder(Specification([Nominal("grade", ["1", "2"])], ["a", "b"]))
    message, unknown = encoder.encode(Chunk(0, 3, [[2], ["1"], [np.int64(2)]]))
    assert (list(message.packed.values), unknown) == ([1.0, 0.0, 1.0], False)


def test_a_value_the_model_does_not_list_travels_by_name() -> None:
    message, unknown = ENCODER.encode(Chunk(0, 2, [["green", -1.0], [None, 2]]))
    assert unknown
    first, second = message.named.rows
    assert (first.values["colour"].nominal, first.values["size"].number) == ("green", -1.0)
    assert dict(second.values).keys() == {"size"}


def test_minus_one_is_a_number_like_any_other() -> None:
    assert packed([["red", -1.0]]) == [0.0, -1.0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"color": "red"}, r"rows\[7\]: no attribute 'color'; the attributes are colour, size"),
        (["red"], r"rows\[7\]: expected 2 values, got 1"),
        ("red", r"rows\[7\]: expected a dict or a sequence, got str"),
        (["red", "big"], r"rows\[7\].size: the attribute is numeric, got the text 'big'"),
        (["red", 10**400], r"rows\[7\].size: the attribute is numeric, got 1000"),
        (["red", [1]], r"rows\[7\].size: the attribute is numeric, got \[1\]"),
        ([[1], 2.0], r"rows\[7\].colour: the attribute is nominal: \[1\] \(list\) is not a name"),
        ([b"red", 2.0], r"rows\[7\].colour: the attribute is nominal: b'red' \(bytes\) is not a name"),
        ([datetime.date(2026, 1, 1), 2.0], r"rows\[7\].colour: .* takes moments as seconds since 1970 UTC"),
    ],
)
def test_a_bad_row_is_named(row: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        ENCODER.encode(Chunk(6, 2, [["red", 1.0], row]))


def test_arrays_and_frames_of_the_wrong_width_are_named() -> None:
    with pytest.raises(InvalidArgument, match=r"rows\[0\]: expected 2 values, got 3"):
        packed(np.ones((2, 3)))


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"colour": ["red"], "size_mm": [1.0]}),
        pl.DataFrame({"colour": ["red"], "size_mm": [1.0]}),
        pa.table({"colour": ["red"], "size_mm": [1.0]}),
        [{"colour": "red"}, {"colour": "blue"}],
    ],
    ids=["pandas", "polars", "arrow", "dicts"],
)
def test_an_attribute_that_no_row_has_is_refused_in_every_form(rows: object) -> None:
    with pytest.raises(
        InvalidArgument, match=r"rows: have no 'size', only 'colour'.*\(None\) if they are unknown"
    ):
        packed(rows)


def test_what_is_no_attribute_is_left_out_of_a_row_that_is_whole() -> None:
    assert packed([{"colour": "red", "size": 1.0, "id": 7}]) == [0.0, 1.0]
    with pytest.raises(
        InvalidArgument, match=r"rows\[1\]: no attribute 'Size'; the attributes are colour, size"
    ):
        packed([{"colour": "red", "size": 1.0}, {"colour": "red", "Size": 1.0}])


def test_frames_that_cannot_be_read_are_refused_in_words() -> None:
    with pytest.raises(InvalidArgument, match="not computed yet: call its collect"):
        list(row_chunks(pl.LazyFrame({"size": [1]}), 10))
    twice = pa.record_batch([pa.array([1]), pa.array([2])], names=["size", "size"])
    for frame in (
        pd.DataFrame([[1, 2]], columns=["size", "size"]),
        pa.Table.from_batches([twice]),
        twice,
        pa.RecordBatchReader.from_batches(twice.schema, [twice]),
    ):
        with pytest.raises(InvalidArgument, match="two columns of the frame have the name 'size'"):
            list(row_chunks(frame, 10))


def test_a_frame_is_cut_without_a_copy() -> None:
    table = pa.table({"x": list(range(1000))})
    (address,) = {chunk.address for chunk in table["x"].chunks[0].buffers() if chunk}
    for chunk in row_chunks(table, 100):
        native = chunk.rows.to_native()["x"].chunks[0]
        assert [part.address for part in native.buffers() if part] == [address]


def test_the_text_of_a_missing_value_in_an_array_of_texts_is_refused() -> None:
    rows = np.array([["red", 1.0], ["blue", 2.0], [np.nan, 3.0]])
    with pytest.raises(InvalidArgument, match=r"rows\[2\]: has the text 'nan' in column 0, .* dtype=object"):
        packed(rows)


@pytest.mark.parametrize("rows", [{"colour": "red"}, "red", np.ones(3)])
def test_one_row_is_not_taken_for_many(rows: object) -> None:
    with pytest.raises(InvalidArgument, match=r"rows: expected"):
        list(row_chunks(rows, 10))


def test_an_iterable_is_read_no_further_than_the_piece_in_hand() -> None:
    read = 0

    def source() -> Iterator[list[float]]:
        nonlocal read
        while True:
            read += 1
            yield [0.0]

    pieces = row_chunks(source(), 10)
    assert [(next(pieces).start, read), (next(pieces).start, read)] == [(0, 10), (10, 20)]


def test_the_last_piece_is_shorter() -> None:
    sizes = [(chunk.start, chunk.size) for chunk in row_chunks(np.ones((25, 2)), 10)]
    assert sizes == [(0, 10), (10, 10), (20, 5)]
    assert [(c.start, c.size) for c in row_chunks(pd.DataFrame({"x": range(25)}), 20)] == [(0, 20), (20, 5)]
