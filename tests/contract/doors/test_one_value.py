"""One value has one name, by whichever door it comes; each door turns the same rows into the same numbers."""

import datetime
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from quercus.belief.frame import Frame
from quercus.client import Nominal, Numeric, Specification
from quercus.client.bridges.mqtt_messages import MessageFormat
from quercus.client.rows import RowEncoder, row_chunks
from quercus.estimators.columns import FittedColumns
from quercus.files import open_table
from quercus.files.schema import Binding
from quercus.proto.inference import open_inference_pb2
from quercus.proto.v1 import values_pb2
from quercus.server.wire.inference import decode_inputs
from quercus.server.wire.limits import MessageLimits
from quercus.server.wire.rows import decode_rows
from quercus.server.wire.schema import AttributeColumn, ModelSchema

ATTRIBUTES = (
    Nominal("open", ("false", "true")),
    Nominal("code", ("101", "102")),
    Nominal("place", ("café", "Oslo")),
    Numeric("time"),
)
SPECIFICATION = Specification(ATTRIBUTES, ["no", "yes"])
SCHEMA = ModelSchema(
    "m",
    1,
    tuple(
        AttributeColumn(each.name, tuple(each.values) if isinstance(each, Nominal) else None, 0, True)
        for each in ATTRIBUTES
    ),
    Frame(("no", "yes")),
)
MOMENT = 1_767_225_600.5
MEANT = [[1, 0, 0, MOMENT], [0, 1, 1, MOMENT + 60], [math.nan] * 4]
"""The rows as numbers: codes of names, seconds, NaN where nothing is known."""

TIMES = [datetime.datetime.fromtimestamp(row[3], datetime.UTC) for row in MEANT[:2]]
TYPED: dict[str, list[Any]] = {
    "open": [True, False, None],
    "code": [101.0, 102.0, None],
    "place": ["cafe\u0301", " Oslo ", None],
    "time": [*TIMES, None],
}
TEXT: dict[str, list[Any]] = {
    "open": ["TRUE", "False", None],
    "code": ["101.0", " 102", None],
    "place": ["caf\u00e9\u3000", "Oslo", None],
    "time": ["2026-01-01T01:00:00.5+01:00", "2026-01-01 00:01:00.500", None],
}
COLUMNS = pytest.mark.parametrize("columns", [TYPED, TEXT], ids=["typed", "text"])
Columns = dict[str, list[Any]]


def records(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def encoded(rows: Any) -> list[list[float]]:
    """The rows as the client sends them."""
    (chunk,) = row_chunks(rows, 100)
    message, is_named = RowEncoder(SPECIFICATION).encode(chunk)
    assert not is_named
    return np.array(message.packed.values).reshape(-1, len(ATTRIBUTES)).tolist()


def by_messages(columns: Columns) -> Any:
    payload = json.dumps(
        [
            {
                name: cell.isoformat() if isinstance(cell, datetime.date) else cell
                for name, cell in row.items()
            }
            for row in records(columns)
        ]
    )
    return encoded([row.values for row in MessageFormat().rows("topic", payload.encode())])


def by_names(columns: Columns) -> Any:
    """As a client in another language may send them."""
    named = values_pb2.NamedRows()
    for record in records(columns):
        values = named.rows.add().values
        for name, cell in record.items():
            if isinstance(cell, float):
                values[name].number = cell
            elif isinstance(cell, bool) or cell is not None:
                values[name].nominal = str(cell)
    return decode_rows(values_pb2.Rows(named=named), SCHEMA, learn=True).values.tolist()


def by_tensors(columns: Columns) -> Any:
    request = open_inference_pb2.ModelInferRequest()
    for name, cells in columns.items():
        tensor = request.inputs.add(name=name, datatype="BYTES", shape=[len(cells)])
        tensor.contents.bytes_contents.extend(b"" if cell is None else str(cell).encode() for cell in cells)
    rows, _ = decode_inputs(request, SCHEMA, MessageLimits())
    return rows.values.tolist()


def by_csv(columns: Columns, folder: Path) -> Any:
    pd.DataFrame(columns).to_csv(folder / "in.csv", index=False)
    return encoded(list(Binding(open_table(folder / "in.csv"), SPECIFICATION)))


def by_parquet(columns: Columns, folder: Path) -> Any:
    parquet.write_table(pa.table(columns), folder / "in.parquet")
    return encoded(list(Binding(open_table(folder / "in.parquet"), SPECIFICATION)))


def by_estimators(columns: Columns) -> Any:
    fitted = FittedColumns(
        ATTRIBUTES,
        tuple(
            {value: i for i, value in enumerate(each.values)} if isinstance(each, Nominal) else None
            for each in ATTRIBUTES
        ),
    )
    return fitted.values(pd.DataFrame(columns).astype(object)).tolist()


DOORS: dict[str, Callable[[Columns, Path], Any]] = {
    "dicts": lambda columns, _: encoded(records(columns)),
    "sequences": lambda columns, _: encoded([list(row.values()) for row in records(columns)]),
    "numpy": lambda columns, _: encoded(
        np.array([list(row.values()) for row in records(columns)], dtype=object)
    ),
    "pandas": lambda columns, _: encoded(pd.DataFrame(columns)),
    "pandas, own dtypes": lambda columns, _: encoded(pd.DataFrame(columns).convert_dtypes()),
    "polars": lambda columns, _: encoded(pl.DataFrame(columns)),
    "Arrow": lambda columns, _: encoded(pa.table(columns)),
    "messages": lambda columns, _: by_messages(columns),
    "names": lambda columns, _: by_names(columns),
    "tensors": lambda columns, _: by_tensors(columns),
    "estimators": lambda columns, _: by_estimators(columns),
    "CSV": by_csv,
    "Parquet": by_parquet,
}


@COLUMNS
@pytest.mark.parametrize("door", DOORS)
def test_every_door_finds_the_same_values(door: str, columns: Columns, tmp_path: Path) -> None:
    np.testing.assert_array_equal(DOORS[door](columns, tmp_path), MEANT)


@pytest.mark.parametrize("datatype", ["BOOL", "INT64", "FP64"])
def test_tensors_of_numbers_and_truth_values_name_values(datatype: str) -> None:
    cells, column, codes = {
        "BOOL": (struct.pack("<3?", True, False, True), "open", [1, 0, 1]),
        "INT64": (struct.pack("<3q", 102, 101, 101), "code", [1, 0, 0]),
        "FP64": (struct.pack("<3d", 102.0, 101.0, math.nan), "code", [1, 0, math.nan]),
    }[datatype]
    request = open_inference_pb2.ModelInferRequest(raw_input_contents=[cells])
    request.inputs.add(name=column, datatype=datatype, shape=[3])
    rows, _ = decode_inputs(request, SCHEMA, MessageLimits())
    np.testing.assert_array_equal(rows.values[:, [each.name for each in ATTRIBUTES].index(column)], codes)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame, pl.DataFrame, pa.table],
    ids=["pandas", "polars", "Arrow"],
)
def test_a_frame_without_a_column_is_refused_and_others_do_not_matter(
    frame: Callable[[Columns], Any],
) -> None:
    np.testing.assert_array_equal(encoded(frame(TYPED | {"note": ["a", "b", "c"]})), MEANT)
    with pytest.raises(
        ValueError, match="the frame has no column 'code'; its columns are 'open', 'place', 'time'"
    ):
        encoded(frame({name: cells for name, cells in TYPED.items() if name != "code"}))


def test_a_query_of_polars_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="LazyFrame is no frame that holds its data: collect it"):
        encoded(pl.LazyFrame(TYPED))
