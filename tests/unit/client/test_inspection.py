"""The look at a file before a model exists: roles, remarks, refusals; the files are those in tests/cases."""

import datetime as dt
import json
import math
import random
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.client import Nominal, Numeric, Specification
from quercus.client.values import Between
from quercus.files import FileError, FileTable, open_table, read
from quercus.files.errors import FileWarning
from quercus.files.inspection import Choices, Outcome, Remark
from quercus.files.schema import Binding, FileSchema, infer_schema, survey_file

CASES = Path(__file__).parents[2] / "cases"


def look(case: str, delimiter: str = ",", **choices: Any) -> FileSchema:
    table = open_table(CASES / case / "in.csv", delimiter=delimiter, quietly=True)
    return survey_file(table, Choices("class", **choices))


def write(tmp_path: Path, header: str, rows: list[str]) -> FileTable:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return open_table(path, quietly=True)


def roles(schema: FileSchema) -> dict[str, str]:
    return {each.seen.name: each.role for each in schema.columns if each.role != "class"}


def kinds(schema: FileSchema) -> list[tuple[str, str, Outcome, int]]:
    return [(each.kind, each.column, each.outcome, each.line) for each in schema.remarks]


@pytest.mark.parametrize("ending", ["csv", "arff"])
def test_wrong_rows_are_said_and_the_others_looked_at(tmp_path: Path, ending: str) -> None:
    """If most rows are wrong, the file is refused: it is read in another way than is meant."""
    path = tmp_path / f"t.{ending}"
    header = {"csv": "x,class\n", "arff": "@relation t\n@attribute x real\n@attribute class {a,b}\n@data\n"}[
        ending
    ]
    path.write_text(f"{header}1,a\n2\n3,b\n4,b,5\n")
    schema = survey_file(open_table(path), Choices("class"))
    (remark,) = schema.remarks
    first = header.count("\n") + 2
    assert (remark.kind, remark.outcome, remark.line) == ("rows", "said", first)
    assert str(remark).startswith(f"line {first}, column 2: the row has 1 ")
    assert ", and 1 more row is wrong; --rejected FILE (quercus push)" in str(remark)
    assert (schema.rows, schema.labelled, roles(schema)) == (2, 2, {"x": "number"})
    with pytest.raises(FileError, match=f"line {first}, column 2: the row has 1"):
        read(path)  # a whole file: nobody would be told
    path.write_text(f"{header}1,a\n2\n3\n")
    with pytest.raises(FileError, match=f"line {first}, column 2: the row has 1"):
        infer_schema(open_table(path), class_column="class")


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("look_ids", [("ids", "ticket", "left out", 0)]),
        ("look_ids_text", [("ids", "image", "left out", 0)]),
        ("look_row_numbers", [("ids", "no", "left out", 0)]),
        ("look_measurements", [("ids", "pay", "said", 0)]),
        ("look_dates", [("date", "taken", "refused", 2)]),
        ("look_dates_of_people", [("date", "taken", "refused", 2)]),
        ("look_bad_cell", [("number", "reading", "refused", 19)]),
        ("look_free_text", [("text", "says", "left out", 0)]),
        ("look_helps_little",
         [("constant", "site", "said", 0), ("same", "again", "said", 0), ("constant", "rare", "said", 0),
          ("missing", "rare", "said", 0)]),
        ("look_tells", [("labels", "outcome", "said", 0)]),
        ("look_names_of_classes", [("labels", "guess", "said", 0)]),
        ("look_thousands", [("written", "sold", "refused", 2)]),
        ("look_percent", [("written", "humidity", "refused", 2)]),
        ("look_unit", [("written", "mass", "refused", 2)]),
        ("look_spelling", [("spelling", "colour", "said", 3), ("spelling", "colour", "said", 6)]),
        ("look_codes", [("codes", "zip", "said", 2)]),
        ("look_mixed", [("mixed", "doors", "said", 4)]),
        ("uncertain_set", [("set", "sky", "said", 4)]),
        ("uncertain_range", [("range", "x", "said", 3)]),
        ("names_with_bar", []),
        ("truth_spelled", []),
        ("whole_numbers", []),
    ],
)  # fmt: skip
def test_what_looks_wrong(case: str, found: list[tuple[str, str, Outcome, int]]) -> None:
    schema = look(case)
    assert kinds(schema) == found
    refused = [each for each in schema.remarks if each.outcome == "refused"]
    table = open_table(CASES / case / "in.csv", quietly=True)
    if not refused:
        assert infer_schema(table, class_column="class") == schema
        return
    with pytest.raises(FileError) as caught:
        infer_schema(table, class_column="class")
    assert caught.value.line == refused[0].line
    column = refused[0].column
    assert f"({column}): " in str(caught.value)
    assert any(f"{each} {column}" in str(caught.value) for each in ("--ignore", "--nominal", "--attribute"))
    way = {"attributes": [column]} if refused[0].kind == "uncertain" else {"nominal": [column]}
    assert [each.name for each in look(case, **way).attributes].count(column) == 1


def test_a_decimal_comma_is_refused() -> None:
    assert kinds(look("look_decimal_comma", ";")) == [("written", "x", "refused", 2)]


@pytest.mark.parametrize(
    ("case", "column"),
    [
        ("look_ids", "ticket"),
        ("look_ids_text", "image"),
        ("look_row_numbers", "no"),
        ("look_free_text", "says"),
    ],
)
def test_what_is_left_out_can_be_taken(case: str, column: str) -> None:
    """Each remark names the flag, and the flag does it."""
    schema = look(case)
    assert roles(schema)[column] == "left out"
    (remark,) = schema.remarks
    assert f"take it with --attribute {column}" in remark.advice
    kept = look(case, attributes=[column])
    assert column in [each.name for each in kept.attributes]
    assert not kept.remarks
    with pytest.warns(FileWarning, match=f"left out: {column}: .*--attribute {column}"):
        data = read(CASES / case / "in.csv")
    assert [each.name for each in data.attributes] == ["x"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(CASES / case / "in.csv", quietly=True).remarks == data.remarks == (remark,)


@pytest.mark.parametrize("seed", range(5))
def test_whole_numbers_that_are_measured_are_kept(tmp_path: Path, seed: int) -> None:
    """They come again as often as chance has it; numbers of rows do not, in whatever order."""
    chance = random.Random(seed)  # noqa: S311
    for width in (50, 500, 5000):
        measured = [chance.randrange(width) for _ in range(400)]
        table = write(tmp_path, "m,class", [f"{value},{value % 2}" for value in measured])
        assert roles(infer_schema(table, class_column="class")) == {"m": "number"}
    numbers = chance.sample(range(7000, 9000), 400)
    table = write(tmp_path, "m,x,class", [f"{value},{value}.5,{value % 2}" for value in numbers])
    assert roles(infer_schema(table, class_column="class")) == {"m": "left out", "x": "number"}


def test_numbers_named_as_ids_are_left_out(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311
    numbers = chance.sample(range(10**9), 60)
    for name, role in (
        ("ticket", "left out"),
        ("customerId", "left out"),
        ("paid", "number"),
        ("order_no", "left out"),
    ):
        table = write(tmp_path, f"{name},x,class", [f"{n},{n / 7:.3f},{n % 2}" for n in numbers])
        assert roles(infer_schema(table, class_column="class"))[name] == role


def test_few_rows_conclude_nothing(tmp_path: Path) -> None:
    table = write(tmp_path, "id,class", [f"{i},{i % 2}" for i in range(19)])
    assert roles(infer_schema(table, class_column="class")) == {"id": "number"}


def test_moments_are_seconds_where_they_are_said_to_be_numbers(tmp_path: Path) -> None:
    rows = ["1970-01-02,1970-01-01T00:00:30Z,a", "1970-01-03,1970-01-01 01:00:00+01:00,b", "?,,a"]
    table = write(tmp_path, "day,at,class", rows)
    with pytest.raises(
        FileError, match=r"line 2, column 1 \(day\): '1970-01-02' .*--numeric day.*--ignore day"
    ) as caught:
        infer_schema(table, class_column="class")
    assert "1 more such: quercus inspect shows all" in caught.value.__notes__
    data = read(table.path, numeric=["day", "at"])
    assert data.attributes == (Numeric("day"), Numeric("at"))
    assert data.values[:2].tolist() == [[86400.0, 30.0], [172800.0, 0.0]]
    binding = Binding(table, Specification(data.attributes, "ab"))
    assert list(binding) == [[86400.0, 30.0], [172800.0, 0.0], [None, None]]
    table = write(tmp_path, "day,class", ["1970-01-02,a", "1970-02-30,b"])
    with pytest.raises(FileError, match=r"line 3.*'1970-02-30' is neither a finite number nor a time"):
        infer_schema(table, class_column="class", numeric=["day"])
    with pytest.raises(FileError, match="'day' is named by --nominal and by --numeric"):
        infer_schema(table, class_column="class", numeric=["day"], nominal=["day"])


@pytest.mark.parametrize(
    ("written", "cells"),
    [
        ("", ["1970-01-01T00:01:00", "1970-01-02T00:00:00"]),
        (' "yyyy-MM-dd HH:mm:ss"', ["'1970-01-01 00:01:00'", "'1970-01-02 00:00:00'"]),
        (" 'dd.MM.yyyy HH:mm'", ["'01.01.1970 00:01'", "'02.01.1970 00:00'"]),
    ],
)
def test_date_attributes_of_arff_are_moments(tmp_path: Path, written: str, cells: list[str]) -> None:
    path = tmp_path / "t.arff"
    rows = "\n".join(f"{cell},{klass}" for cell, klass in zip(cells, "ab", strict=True))
    path.write_text(f"@relation r\n@attribute t date{written}\n@attribute class {{a,b}}\n@data\n{rows}\n")
    with pytest.raises(FileError, match=r"line 5, column 1 \(t\): .*--numeric t.*--ignore t"):
        infer_schema(open_table(path), class_column="class")
    assert read(path, numeric=["t"]).values.tolist() == [[60.0], [86400.0]]


def test_cells_take_the_spelling_of_their_attribute() -> None:
    truth = read(CASES / "truth_spelled/in.csv")
    assert truth.attributes == (Nominal("smoker", ("false", "true")), Numeric("x"))
    assert (truth.classes, truth.labels) == (("false", "true"), ("true", "false", "true", "false"))
    assert truth.values[:3, 0].tolist() == [1.0, 0.0, 1.0]
    codes = read(CASES / "whole_numbers/in.csv", nominal=["machine"])
    assert codes.attributes[0] == Nominal("machine", ("1.10", "101", "102"))
    assert (codes.classes, codes.labels) == (("0", "1"), ("1", "0", "1", "0"))
    assert codes.values[:, 0].tolist() == [1.0, 1.0, 2.0, 0.0]
    given = Specification([Nominal("smoker", ("False", "True"))], ("no", "yes"))
    bound = Binding(open_table(CASES / "truth_spelled/in.csv"), given)
    assert list(bound) == [["True"], ["False"], ["True"], [None]]
    codes_model = Specification([Nominal("machine", ("101", "102"))], ("no", "yes"))
    bound = Binding(open_table(CASES / "whole_numbers/in.csv"), codes_model)
    assert list(bound) == [["101"], ["101"], ["102"], ["1.10"]]


def test_uncertain_cells_are_sets_and_ranges() -> None:
    model = Specification([Nominal("sky", ("sun", "rain"))], ("up", "down"))
    table = open_table(CASES / "uncertain_set/in.csv")
    assert list(Binding(table, model))[2] == [frozenset({"sun", "rain"})]
    declared = Specification([Nominal("sky", ("sun", "rain", "sun|rain"))], ("up", "down"))
    assert list(Binding(table, declared))[2] == ["sun|rain"]
    numbers = Specification([Numeric("x")], ("up", "down"))
    assert list(Binding(open_table(CASES / "uncertain_range/in.csv"), numbers))[1] == [Between(2.0, 9.0)]
    shops = Specification([Nominal("shop", ("North",))], ("up", "down"))
    assert list(Binding(open_table(CASES / "names_with_bar/in.csv"), shops))[2] == ["A|B"]
    assert list(Binding(open_table(CASES / "names_with_bar/in.csv"), shops, uncertain=True))[2] == [
        frozenset({"A", "B"})
    ]
    made = infer_schema(table, class_column="class")
    assert made.attributes[0] == Nominal("sky", ("rain", "sun"))
    taken = infer_schema(table, class_column="class", attributes=["sky"])
    assert taken.attributes[0] == Nominal("sky", ("rain", "sun", "sun|rain"))


def test_read_returns_what_cells_allow() -> None:
    found = read(CASES / "uncertain_set/in.csv")
    assert math.isnan(found.values[2, 0])
    assert found.parts == {(2, 0): ((0.0, 0.0), (1.0, 1.0))}
    numbers = read(CASES / "uncertain_range/in.csv")
    assert numbers.attributes[0] == Numeric("x")
    assert numbers.parts == {(1, 0): ((2.0, 9.0),)}


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["2", "3", "9..2"], r"line 4, column 1 \(x\): '9..2' is not a range: give two finite numbers"),
        (["2", "3", "1..1e999"], r"line 4, column 1 \(x\): '1..1e999' is not a range"),
        (["2", "3..4", "x..y"], r"line 4, column 1 \(x\): 'x..y' is neither a number nor a range"),
        (["2", "3", "1|2"], r"line 4, column 1 \(x\): '1\|2' is one of several numbers; write a range"),
    ],
)
def test_what_is_no_range_is_refused(tmp_path: Path, cells: list[str], says: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x,class\n" + "".join(f"{cell},{'ab'[i % 2]}\n" for i, cell in enumerate(cells)))
    with pytest.raises(FileError, match=says):
        read(path, class_name="class")


def test_a_bar_in_a_name_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "sky.csv"
    path.write_text("sky,class\nsun,a\nrain,b\nsun\\|rain,a\nrain|sun,b\n")
    found = read(path)
    assert found.attributes == (Nominal("sky", ("rain", "sun", "sun|rain")),)
    assert found.values[:3, 0].tolist() == [1.0, 0.0, 2.0]
    assert found.parts == {(3, 0): ((0.0, 0.0), (1.0, 1.0))}


def test_what_is_ignored_is_not_judged() -> None:
    for case, column in (("look_dates", "taken"), ("look_unit", "mass"), ("look_bad_cell", "reading")):
        schema = look(case, ignore=[column])
        assert [each for each in schema.remarks if each.column == column] == []


def test_many_equal_columns_and_many_values_stay_in_bounds(tmp_path: Path) -> None:
    """Nothing is kept but the distinct cells up to their bound."""
    row = ",".join(["0"] * 300)
    table = write(
        tmp_path,
        ",".join(f"c{k}" for k in range(300)) + ",x,class",
        [f"{row},{i}.5,{i % 2}" for i in range(5000)],
    )
    schema = infer_schema(table, class_column="class")
    seen = next(each.seen for each in schema.columns if each.seen.name == "x")
    assert (len(seen.numbers), seen.known, seen.at_full) == (3311, 5000, 3312)
    assert [each.kind for each in schema.remarks] == ["constant"] * 300 + ["ids"]


# Parquet


def parquet(tmp_path: Path, columns: dict[str, Any], **more: Any) -> FileTable:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    table = pa.table(columns | {"class": ["a", "b", "a"]})
    pq.write_table(table.replace_schema_metadata(more or None), path)
    return open_table(path)


def test_every_type_of_parquet(tmp_path: Path) -> None:
    """A type is a number, a name, a moment, or refused in words; never the text of something else."""
    pa = pytest.importorskip("pyarrow")
    day = dt.date(1970, 1, 2)
    moment = dt.datetime(1970, 1, 1, 0, 1)
    numbers = {
        "int8": pa.array([1, 2, None], pa.int8()),
        "uint64": pa.array([1, 2, None], pa.uint64()),
        "float16": pa.array([1.0, 2.0, None], pa.float32()).cast(pa.float16()),
        "float64": pa.array([1.0, 2.0, float("nan")]),
        "decimal": pa.array([Decimal("1.00"), Decimal("2.00"), None]),
        "duration": pa.array([dt.timedelta(seconds=1), dt.timedelta(seconds=2), None]),
        "text": pa.array(["1", "2.0", ""]),
    }
    moments = {
        "date32": pa.array([day, day, None]),
        "date64": pa.array([day, day, None], pa.date64()),
        "timestamp": pa.array([moment, moment, None], pa.timestamp("us")),
        "timestamp_tz": pa.array([moment, moment, None], pa.timestamp("ms", tz="Europe/Berlin")),
    }
    names = {
        "bool": (pa.array([True, False, None]), ("false", "true")),
        "string": (pa.array(["u", "v ", None]), ("u", "v")),
        "large_string": (pa.array(["u", "v", "?"], pa.large_string()), ("u", "v")),
        "dictionary": (pa.array(["u", "v", None]).dictionary_encode(), ("u", "v")),
    }
    refused = {
        "binary": pa.array([b"x", b"\xff", None]),
        "struct": pa.array([{"a": 1}, {"a": 2}, None]),
        "list": pa.array([[1.0], [2.0, 3.0], None]),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "time": pa.array([dt.time(12), dt.time(13), None]),
    }
    plain = numbers | {name: array for name, (array, _) in names.items()}
    table = parquet(tmp_path, plain | moments | refused)
    data = read(table.path, numeric=list(moments), ignore=list(refused))
    found = {each.name: each for each in data.attributes}
    assert {name: found[name] for name in (*numbers, *moments)} == {
        n: Numeric(n) for n in (*numbers, *moments)
    }
    assert {name: found[name] for name in names} == {
        n: Nominal(n, values) for n, (_, values) in names.items()
    }
    column = {name: data.values[:2, k].tolist() for k, name in enumerate(found)}
    assert [column[name] for name in numbers] == [[1.0, 2.0]] * len(numbers)
    assert [column[name] for name in moments] == [[86400.0] * 2, [86400.0] * 2, [60.0] * 2, [60.0] * 2]
    assert [column[name] for name in names] == [[1, 0], [0, 1], [0, 1], [0, 1]]
    assert np.isnan(data.values[2]).all()
    schema = survey_file(table, Choices("class"))
    assert {each.column for each in schema.remarks if each.outcome == "refused"} == {*moments, *refused}
    for name in refused:
        with pytest.raises(FileError, match=rf"column '{name}': holds .*--ignore {name}"):
            infer_schema(table, class_column="class", ignore=[*(refused.keys() - {name}), *moments])
    by_id = infer_schema(table, class_column="class", ignore=[*refused, *moments])
    assert [each.kind for each in by_id.remarks] == ["codes"]  # text of numbers


def test_the_index_of_a_table_of_pandas_is_left_out(tmp_path: Path) -> None:
    for name in ("__index_level_0__", "key"):
        pandas = json.dumps({"index_columns": [name], "columns": []})
        table = parquet(tmp_path, {"x": [1.0, 2.0, 3.0], name: [0, 1, 2]}, pandas=pandas)
        schema = infer_schema(table, class_column="class")
        assert schema.attributes == (Numeric("x"),)
        (remark,) = schema.remarks
        assert (remark.kind, remark.column, remark.outcome) == ("index", name, "left out")
        assert f"--attribute {name}" in remark.advice
        assert f"--id-column {name}" in remark.advice
        kept = infer_schema(table, class_column="class", attributes=[name])
        assert kept.attributes == (Numeric("x"), Numeric(name))
        assert list(Binding(table, Specification(kept.attributes, "ab")))[2] == [3.0, 2.0]
    other = json.dumps({"index_columns": [{"kind": "range"}], "columns": [{"name": "x"}]})
    assert infer_schema(parquet(tmp_path, {"x": [1, 2, 3]}, pandas=other), class_column="class").remarks == ()


def test_categories_of_pandas_are_names(tmp_path: Path) -> None:
    pandas = json.dumps({"index_columns": [], "columns": [{"name": "x", "pandas_type": "categorical"}]})
    table = parquet(tmp_path, {"x": [3, 1, 3]}, pandas=pandas)
    assert infer_schema(table, class_column="class").attributes == (Nominal("x", ("1", "3")),)
    assert list(Binding(table, Specification([Numeric("x")], "ab"))) == [[3.0], [1.0], [3.0]]


def test_declared_names_of_which_each_comes_once_are_left_out(tmp_path: Path) -> None:
    """Also where an ARFF file declares them, or pandas says that they are categories."""
    names = [f"c{k}" for k in range(24)]
    path = tmp_path / "t.arff"
    rows = "\n".join(f"{name},{k % 5},{'ab'[k % 2]}" for k, name in enumerate(names))
    path.write_text(
        f"@relation r\n@attribute key {{{','.join(names)}}}\n@attribute x real\n"
        f"@attribute class {{a,b}}\n@data\n{rows}\n"
    )
    schema = infer_schema(open_table(path), class_column="class")
    assert (roles(schema), kinds(schema)) == (
        {"key": "left out", "x": "number"}, [("ids", "key", "left out", 0)],
    )  # fmt: skip
    kept = infer_schema(open_table(path), class_column="class", attributes=["key"])
    assert kept.attributes[0] == Nominal("key", names)


def test_a_remark_reads_well() -> None:
    (remark,) = look("look_bad_cell").remarks
    assert str(remark) == (
        "reading, line 19: '4.O7' is not a finite number, and 23 other cells are; correct it, or say that it means a "
        "missing value with --missing 4.O7, or take the column as names with --nominal reading"
    )
    assert isinstance(remark, Remark)
    assert remark.sentence == "reading, line 19: '4.O7' is not a finite number, and 23 other cells are"
