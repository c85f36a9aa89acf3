"""One and the same column of odd cells through every door: one value."""

import datetime
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.client.serving import Serving
from pyarrow import feather

from quercus.client import Client, InvalidArgument, Nominal, Numeric, Specification
from quercus.client.bridges.messages import MessageFormat
from quercus.estimators.columns import FittedColumns
from quercus.files import open_table
from quercus.files.schema import Binding
from quercus.inference import open_inference_pb2 as pb
from quercus.inference import open_inference_pb2_grpc
from quercus.v1 import instance_pb2, instance_pb2_grpc, values_pb2

ATTRIBUTES = [
    Nominal("on", ["False", "TRUE"]),
    Nominal("code", ["101.0", "102"]),
    Nominal("hue", ["n\u00e9e", "red"]),
    Numeric("at"),
]
DAY = datetime.datetime(1970, 1, 2)
TEXTS = {
    "on": ["True", " FALSE", "?", "true"],
    "code": ["101.0", "102 ", "", "101"],
    "hue": ["ne\u0301e", " red", "?", "n\u00e9e"],
    "at": ["1970-01-02", "1970-01-02T00:00:00Z", "", "86400.0"],
}
TYPED = {
    "on": [True, False, None, True],
    "code": [101.0, 102.0, None, 101.0],
    "hue": TEXTS["hue"],
    "at": [DAY, DAY, None, DAY],
}
RIGHT = [
    {"on": "true", "code": "101", "hue": "n\u00e9e", "at": 86400.0},
    {"on": "false", "code": "102", "hue": "red", "at": 86400.0},
    dict.fromkeys(["on", "code", "hue", "at"]),
    {"on": "true", "code": "101", "hue": "n\u00e9e", "at": 86400.0},
]


def dicts(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def sequences(columns: dict[str, list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def messages() -> list[dict[str, Any]]:
    """Return rows as the bridge reads them from JSON, which has no moments."""
    said = [
        b'{"on": true, "code": 101, "hue": "ne\\u0301e", "at": "1970-01-02"}',
        b'{"on": "FALSE", "code": 102.0, "hue": "red ", "at": 86400}',
        b'{"on": null, "code": null, "hue": "?"}',
        b'{"on": "True", "code": "101", "hue": "n\\u00e9e", "at": "1970-01-02 00:00"}',
    ]
    return [dict(row.values) for each in said for row in MessageFormat().rows(each, "m")]


DOORS: dict[str, Callable[[], Any]] = {
    "dicts of texts": lambda: dicts(TEXTS),
    "dicts of typed cells": lambda: dicts(TYPED),
    "sequences": lambda: sequences(TYPED),
    "an iterator": lambda: iter(sequences(TEXTS)),
    "an array of objects": lambda: np.array(sequences(TYPED), dtype=object),
    "an array of texts": lambda: np.array(sequences(TEXTS)),
    "pandas": lambda: pd.DataFrame(TYPED),
    "pandas, texts": lambda: pd.DataFrame(TEXTS, dtype="string"),
    "pandas, objects": lambda: pd.DataFrame(TYPED, dtype=object),
    "pandas, categories": lambda: pd.DataFrame(TYPED).astype({"on": "category", "code": "category"}),
    "pandas, whole numbers": lambda: pd.DataFrame(TYPED).astype({"code": "Int64", "on": "boolean"}),
    "polars": lambda: pl.DataFrame(TYPED),
    "polars, texts": lambda: pl.DataFrame(TEXTS),
    "Arrow": lambda: pa.table(TYPED),
    "MQTT": messages,
}


@pytest.fixture
def odd(client: Client, name: str) -> str:
    created = client.create_model(name, Specification(ATTRIBUTES, ["FALSE", "True"]))
    assert created.specification.classes == ("false", "true")
    assert [getattr(each, "values", ()) for each in created.specification.attributes] == [
        ("false", "true"),
        ("101", "102"),
        ("n\u00e9e", "red"),
        (),
    ]
    return name


def stored(client: Client, model: str) -> list[dict[str, Any]]:
    return [dict(each.values) for each in client.instances(model)]


@pytest.mark.parametrize("door", DOORS)
def test_rows_of_every_form(door: str, client: Client, odd: str) -> None:
    client.push(odd, DOORS[door](), labels=[True, "FALSE", None, " true"])
    assert stored(client, odd) == RIGHT
    assert [each.history[0].label for each in client.instances(odd)] == ["true", "false", None, "true"]
    assert [getattr(each, "values", ()) for each in client.get_model(odd).specification.attributes] == [
        ("false", "true"),
        ("101", "102"),
        ("n\u00e9e", "red"),
        (),
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_rows_of_files(suffix: str, client: Client, odd: str, tmp_path: Path) -> None:
    path = tmp_path / f"in.{suffix}"
    if suffix == "csv":
        path.write_text("\n".join(map(",".join, [tuple(TEXTS), *zip(*TEXTS.values(), strict=True)])) + "\n")
    elif suffix == "parquet":
        pq.write_table(pa.table(TYPED), path)
    else:
        feather.write_feather(pa.table(TYPED), path)
    table = open_table(path)
    client.push(odd, Binding(table, client.get_model(odd).specification))
    assert stored(client, odd) == RIGHT


def test_rows_by_name_of_a_client_in_another_language(client: Client, odd: str, serving: Serving) -> None:
    named = values_pb2.NamedRows()
    for texts, typed in zip(dicts(TEXTS), dicts(TYPED), strict=True):
        row = named.rows.add().values
        for key in texts:
            row[key].nominal = texts[key]
        if typed["code"] is not None:
            row["code"].number = typed["code"]
    label = [values_pb2.Label(class_name=text) for text in ("True", "FALSE", "true")]
    label.append(values_pb2.Label(class_set=values_pb2.ClassSet(classes=["TRUE", "true"])))
    request = instance_pb2.PushBatchRequest(
        model=f"models/{odd}",
        batch_id="b",
        rows=values_pb2.Rows(named=named),
        labels=values_pb2.Labels(list=values_pb2.LabelList(labels=label)),
    )
    with grpc.insecure_channel(serving.address) as channel:
        instance_pb2_grpc.InstanceServiceStub(channel).PushBatch(request, timeout=30)
    assert stored(client, odd) == RIGHT
    assert [each.history[0].label for each in client.instances(odd)] == ["true", "false", "true", "true"]


def test_tensors(client: Client, name: str, serving: Serving) -> None:
    """The model is taught that exactly the rows `on` with code 101 are of the class true."""
    client.create_model(name, Specification(ATTRIBUTES, ["False", "True"]))
    taught = [[on, code, "red", 0.0] for on in (True, False) for code in (101, 102) for _ in range(20)]
    report = client.push(name, taught, [on and code == 101 for on, code, *_ in taught])
    client.wait_grown(name)
    assert report.rows == 80
    wanted = client.classify(name, RIGHT[:2] + RIGHT[3:]).theta
    found = client.classify(name, pl.DataFrame(TYPED)[[0, 1, 3]])
    np.testing.assert_array_equal(found.theta, wanted)
    again = pl.DataFrame(client.classify(name, pa.table(TYPED).to_reader()))[[0, 1, 3]]
    assert again.equals(pl.DataFrame(found.to_arrow()))
    assert again["class"].to_list() == found.labels
    np.testing.assert_array_equal(again["theta:true"], wanted[:, 1])
    np.testing.assert_array_equal(client.classify(name, dicts(TEXTS)).theta[[0, 1, 3]], wanted)
    request = pb.ModelInferRequest(model_name=name)
    for column, cells in TEXTS.items():
        tensor = request.inputs.add(name=column, datatype="BYTES", shape=[4])
        tensor.contents.bytes_contents.extend(cell.encode() for cell in cells)
    request.outputs.add(name="probabilities")
    with grpc.insecure_channel(serving.address) as channel:
        said = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=30)
    found = np.array(said.outputs[0].contents.fp64_contents).reshape(4, 2)
    np.testing.assert_array_equal(found[[0, 1, 3]], wanted)
    assert wanted[0, 1] > 0.5 > wanted[1, 1]


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("columns", [TEXTS, TYPED], ids=["texts", "typed"])
def test_columns_of_estimators(columns: dict[str, list[Any]], made: Callable[[Any], Any]) -> None:
    fitted = FittedColumns.of(pd.DataFrame(dicts(TYPED)), ["on", "code", "hue"])
    assert [getattr(each, "values", None) for each in fitted.attributes] == [
        ("false", "true"),
        ("101", "102"),
        ("n\u00e9e", "red"),
        None,
    ]
    nan = math.nan
    np.testing.assert_array_equal(
        fitted.values(made(columns)),
        [[1, 0, 0, 86400], [0, 1, 1, 86400], [nan, nan, nan, nan], [1, 0, 0, 86400]],
    )


def test_names_of_one_value_make_no_model(client: Client, name: str) -> None:
    for attributes, classes, words in (
        ([Nominal("on", ["true", "True"])], ["a", "b"], "'true' and 'True' are one value, true"),
        ([Nominal("code", ["101", "101.0"])], ["a", "b"], "'101' and '101.0' are one value, 101"),
        ([Numeric("at")], ["FALSE", "True", "true"], "'True' and 'true' are one value, true"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            client.create_model(name, Specification(attributes, classes))


def test_what_differs_in_case_or_inside_stays_two_values(client: Client, name: str) -> None:
    client.create_model(name, Specification([Nominal("hue", ["Red", "red"])], ["yes", "no"]))
    client.push(name, [["red"], ["Red"], ["RED"], ["true"], ["True"], ["1.10"], ["1e3"], ["007"]])
    hue = client.get_model(name).specification.attributes[0]
    assert isinstance(hue, Nominal)
    assert hue.values == ("Red", "red", "RED", "true", "True", "1.10", "1e3", "007")


def test_a_moment_is_no_name_at_any_door(client: Client, name: str) -> None:
    client.create_model(name, Specification([Nominal("at", ["x"])], ["yes", "no"]))
    for rows in ([[DAY]], [{"at": DAY.date()}], pd.DataFrame({"at": [DAY]}), pl.DataFrame({"at": [DAY]})):
        with pytest.raises(InvalidArgument, match=r"rows\[0\].at: .* moments as seconds since\s+1970 UTC"):
            client.push(name, rows)
