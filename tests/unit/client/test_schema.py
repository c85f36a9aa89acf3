"""The meaning of columns: inferred kinds, binding to a model, labels, truths, contours, specification files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import parquet

from quercus.belief.errors import InvalidInput
from quercus.cli.model_options import plugin_of
from quercus.cli.specfile import from_dict, read_presentation, read_specification, to_dict
from quercus.client import Nominal, Numeric, Specification
from quercus.client.comparing import differences
from quercus.files import FileError, FileTable, open_table, read
from quercus.files.labels import open_labels, read_truth
from quercus.files.schema import Binding, class_column, infer_schema
from quercus.files.words import typed_classes
from quercus.specification.values import finite_number

DATA = "colour,size,grade,class\nred,1,1,no\nblue,?,2,yes\n,2.5e1,1,no\n"


def table(tmp_path: Path, content: str, name: str = "t.csv") -> FileTable:
    path = tmp_path / name
    path.write_text(content)
    return open_table(path)


@pytest.mark.parametrize("text", ["1", "-2.5", "+.5", "3.", "1e-3", "0012"])
def test_numbers(text: str) -> None:
    assert finite_number(text) == float(text)


@pytest.mark.parametrize("text", ["", "x", "1_0", "inf", "nan", "0x10", "1 2", "1e999", "٣", "1,5", "1\n"])
def test_no_numbers(text: str) -> None:
    assert finite_number(text) is None


def test_kinds_are_inferred_and_values_sorted(tmp_path: Path) -> None:
    schema = infer_schema(table(tmp_path, DATA), class_column="class")
    assert schema.attributes == (Nominal("colour", ("blue", "red")), Numeric("size"), Numeric("grade"))
    assert (schema.classes, schema.rows) == (("no", "yes"), 3)


def test_columns_are_left_out_or_taken_as_names(tmp_path: Path) -> None:
    schema = infer_schema(table(tmp_path, DATA), class_column="class", ignore=["size"], nominal=["grade"])
    assert schema.attributes == (Nominal("colour", ("blue", "red")), Nominal("grade", ("1", "2")))


def test_arff_declares_kinds_and_order(tmp_path: Path) -> None:
    text = "@attribute a {z, b}\n@attribute n real\n@attribute kind {q, p}\n@data\nb,?,p\n"
    opened = table(tmp_path, text, "t.arff")
    assert class_column(opened, None) == "kind"
    schema = infer_schema(opened, class_column="kind")
    assert (schema.attributes, schema.classes) == ((Nominal("a", ("z", "b")), Numeric("n")), ("q", "p"))


@pytest.mark.parametrize("ending", ["csv", "arff"])
def test_names_beyond_the_bound_share_a_bucket_as_in_a_stream(tmp_path: Path, ending: str) -> None:
    """The first names in the file are kept, of an ARFF file the first that are declared."""
    names = [f"v{(7 * i) % 1_003}" for i in range(3_009)]
    path, head = tmp_path / f"t.{ending}", "a,class\n"
    if ending == "arff":
        declared = ",".join(f"v{i}" for i in range(1_003))
        head = f"@relation t\n@attribute a {{{declared}}}\n@attribute class {{0,1}}\n@data\n"
    path.write_text(head + "".join(f"{name},{i % 2}\n" for i, name in enumerate(names)))
    kept = [f"v{i}" for i in range(1_000)] if ending == "arff" else names[:1_000]
    schema = infer_schema(open_table(path), class_column="class")
    (attribute,) = schema.attributes
    assert isinstance(attribute, Nominal)
    assert set(attribute.values) == set(kept)
    (remark,) = (each for each in schema.remarks if each.kind == "values")
    assert remark.says == (
        "has more than 1,000 different names: the first 1,000 are kept, and those of 9 rows count as (other names)"
    )
    assert names[remark.line - 1 - head.count("\n")] not in kept
    data = read(path)
    wanted = [attribute.values.index(name) if name in kept else 1_000 for name in names]
    assert data.values[:, 0].tolist() == wanted
    assert data.frame()["a"].tolist() == [name if name in kept else "(other names)" for name in names]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (DATA, {"class_column": "kind"}, "--class: no column 'kind'; the columns are colour, size, grade, class"),
        (DATA, {"class_column": "class", "ignore": ["x"]}, "--ignore: no column 'x'"),
        (DATA, {"class_column": "class", "nominal": ["x"]}, "--nominal: no column 'x'"),
        ("a,class\n", {"class_column": "class"}, "has a header but no rows"),
        ("a,class\n?,x\n?,y\n", {"class_column": "class"}, "no column left .*: a: has no value at all"),
        ("a,class\n1,x\n2,x\n", {"class_column": "class"}, "class column 'class' has 1 class; 2 to 64"),
        ("class\nx\ny\n", {"class_column": "class"}, "has no column left to learn from"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_used(
    tmp_path: Path, content: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(FileError, match=words):
        infer_schema(table(tmp_path, content), **options)  # type: ignore[arg-type]


HALF = "a,kind\n1,x\n2,\n3,?\n4, y \n5,x | y\n6, \n"


def test_given_classes_may_be_more_than_a_column_names(tmp_path: Path) -> None:
    """A file in which few rows are labelled, or none: its classes are known all the same."""
    found = infer_schema(table(tmp_path, HALF), class_column="kind", frame=("z", "y", "x"))
    assert (found.classes, found.rows, found.labelled) == (("z", "y", "x"), 6, 3)
    empty = infer_schema(table(tmp_path, "a,kind\n1,\n2,?\n"), class_column="kind", frame=("no", "yes"))
    assert (empty.classes, empty.rows, empty.labelled) == (("no", "yes"), 2, 0)
    assert [each.name for each in empty.attributes] == ["a"]
    numbers = infer_schema(table(tmp_path, "a,kind\n1,0\n2,\n"), class_column="kind", frame=("0", "1"))
    assert (numbers.classes, numbers.labelled) == (("0", "1"), 1)


def test_labels_that_are_no_given_class_are_refused_at_their_line(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=r"line 5, column 2 \(kind\): 'y' is not a class; the classes are x, z"
    ):
        infer_schema(table(tmp_path, HALF), class_column="kind", frame=("x", "z"))


def test_a_column_without_labels_says_how_to_name_the_classes(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"has 0 classes; 2 to 64 are possible\. .*with --classes A,B,C"):
        infer_schema(table(tmp_path, "a,kind\n1,\n2,?\n"), class_column="kind")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        (" yes \r\n\n no\n", ("yes", "no")),
        ('a, "b, c", "d ""e"""\nf', ("a", "b, c", 'd "e"', "f")),
        ("0\n1\n10", ("0", "1", "10")),
    ],
)
def test_classes_are_typed_one_a_line_or_between_commas(text: str, names: tuple[str, ...]) -> None:
    assert typed_classes(text) == names


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "classes: has 0 names, must have 2 to 64"),
        ("a", "classes: has 1 name,"),
        ("a,,b", "classes: name 2 of 3 is empty: is there one comma too many?"),
        ("a,b\nc,", "classes: name 4 of 4 is empty"),
        ("a\nb\na", "classes: 'a' comes twice: it is name 1 too"),
        ("a,?", r"classes: name 2 is \?, which stands for an unknown class"),
        ('a,"b', "classes: .* cannot be read"),
        ("\n".join(map(str, range(65))), "classes: has 65 names"),
        ("a," + "b" * 101, r"classes\[1\]: has 101 characters, at most 100"),
    ],
)
def test_wrong_names_of_classes_are_named(text: str, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        typed_classes(text)


SPECIFICATION = Specification([Numeric("size"), Nominal("colour", ["red"])], ["no", "yes"])


def test_columns_are_bound_by_name(tmp_path: Path) -> None:
    binding = Binding(table(tmp_path, DATA), SPECIFICATION)
    assert list(binding) == [[1.0, "red"], [None, "blue"], [25.0, None]]
    assert binding.unused == ("grade", "class")


def test_a_cell_that_is_no_number_is_named(tmp_path: Path) -> None:
    binding = Binding(table(tmp_path, "colour,size\nred,1\nred,big\n"), SPECIFICATION)
    with pytest.raises(FileError, match=r"line 3, column 2 \(size\): 'big' is not a finite number"):
        list(binding)


def test_columns_that_do_not_fit_the_model(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="has no column for the model's size; the columns are colour"):
        Binding(table(tmp_path, "colour\nred\n"), SPECIFICATION)
    declared = "@attribute colour {red}\n@attribute size {big}\n@data\nred,big\n"
    with pytest.raises(FileError, match="declares 'size' nominal, it is numeric in the model"):
        Binding(table(tmp_path, declared, "t.arff"), SPECIFICATION)


def test_plausibilities_follow_the_frame_whatever_the_order_of_columns(tmp_path: Path) -> None:
    rows = list(open_labels(table(tmp_path, "b,a\n.5,1\n0,.25\n"), ["a", "b"]))
    np.testing.assert_array_equal(rows, [[1.0, 0.5], [0.25, 0.0]])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,c\n1,1\n", "line 1: the header must name the classes a, b: c is not a class"),
        ("a\n1\n", "no column for the class b"),
        ("a,b\n1,1.5\n", r"line 2, column 2 \(b\): '1.5' is not a plausibility in \[0, 1\]"),
        ("a,b\n1,-0.1\n", "is not a plausibility"),
        ("a,b\n1,x\n", "'x' is not a plausibility"),
        ("a,b\n1,\n", "a missing value is not a plausibility"),
        ("id,label\n1,a\n", r"id, label is not a class; is one a column of classes\? \(--label-column\)"),
        ("a,b\n1,1\n0,0\n", "line 3: every plausibility is 0"),
    ],
)
def test_bad_plausibilities(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        list(open_labels(table(tmp_path, content), ["a", "b"]))


def test_truths_by_row_number_and_by_id(tmp_path: Path) -> None:
    path = table(tmp_path, "id,class\nx7,a\nx9,?\n").path
    assert read_truth(path, None, ["a", "b"]) == {"0": "a", "1": None}
    assert read_truth(path, "class", ["a", "b"], id_column="id") == {"x7": "a", "x9": None}
    alone = table(tmp_path, "whatever\nb\n", "one.csv").path
    assert read_truth(alone, "class", ["a", "b"]) == {"0": "b"}


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("id,class\nx,c\n", {}, r"line 2, column 2 \(class\): 'c' is not a class; the classes are a, b"),
        ("id,kind\nx,a\n", {}, "which column holds the class"),
        ("id,kind\nx,a\n", {"column": "sort"}, "--class: no column 'sort'"),
        ("id,class\nx,a\nx,b\n", {"id_column": "id"}, r"line 3, column 1 \(id\): the id 'x' comes twice"),
        ("id,class\n,a\n", {"id_column": "id"}, "the id is missing"),
    ],
)
def test_bad_truths(tmp_path: Path, content: str, options: dict[str, str], words: str) -> None:
    path = table(tmp_path, content).path
    with pytest.raises(FileError, match=words):
        read_truth(path, options.get("column"), ["a", "b"], id_column=options.get("id_column"))


FULL = Specification(
    [Nominal("c", ["r", "b"], "reject"), Numeric("s", 6), Numeric("t", 4, [1.0, 2.5])],
    ["no", "yes"],
    alpha=0.5,
    budget=7,
    max_depth=3,
)


def test_a_specification_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(to_dict(FULL)))
    assert read_specification(path) == FULL
    path.write_text(json.dumps({"name": "m", "specification": to_dict(FULL)}))
    assert read_specification(path) == FULL


def test_a_specification_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text('classes = ["no", "yes"]\nbudget = 3\n[[attributes]]\nname = "c"\nvalues = ["r"]\n')
    assert read_specification(path) == Specification([Nominal("c", ["r"])], ["no", "yes"], budget=3)


def test_a_strategy_in_a_file_is_a_name_or_a_table(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    head = 'classes = ["no", "yes"]\nattributes = [{name = "s", bins = 4}]\n'
    path.write_text(f'{head}strategy = "committee"\n')
    assert read_specification(path).strategy == {"name": "committee"}
    path.write_text(f'{head}[strategy]\nname = "shared"\nregret = "none"\n')
    found = read_specification(path)
    assert found.strategy == {"name": "shared", "regret": None}
    assert from_dict(path, to_dict(found)) == found
    path.write_text(f"{head}[strategy]\ncover = 0.1\n")
    with pytest.raises(FileError, match=r"strategy\.name: is None, must be the name of a strategy"):
        read_specification(path)


def test_a_strategy_of_flags() -> None:
    def chosen(name: str | None, *parameters: str) -> Any:
        return plugin_of("strategy", name, "strategy-parameter", list(parameters))

    assert chosen("committee", "cover=0.1", "explore=3") == {"name": "committee", "cover": 0.1, "explore": 3}
    assert chosen("shared", "regret=none") == {"name": "shared", "regret": None}
    assert chosen(None) is None
    for name, parameters, words in (
        (None, ["cover=1"], "--strategy-parameter also needs --strategy NAME"),
        ("committee", ["cover"], "--strategy-parameter takes KEY=VALUE, not 'cover'"),
        ("committee", ["base.cover=1"], "--strategy-parameter takes KEY=VALUE, not 'base.cover=1'"),
    ):
        with pytest.raises(typer.BadParameter, match=words):
            chosen(name, *parameters)


def test_models_differ_by_the_parameters_of_their_strategies() -> None:
    known = replace(FULL, strategy={"name": "committee", "cover": 0.1, "explore": 3})
    for same in ("committee", {"explore": 3, "name": "committee"}):
        assert differences(known, replace(FULL, strategy=same)) == []
    other = replace(FULL, strategy={"name": "committee", "cover": 0.2})
    assert differences(known, other) == ["strategy cover 0.1, given 0.2"]
    assert differences(known, replace(FULL, strategy="shared")) == ["strategy name committee, given shared"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "the file must be a table"),
        ({"classes": ["a"]}, "attributes is not given"),
        ({"attributes": [], "classes": "ab"}, "classes must be a list"),
        ({"attributes": [], "classes": [1, 2]}, "classes must be text, has 1"),
        ({"attributes": [], "classes": [], "colour": 1}, "no key 'colour'"),
        (
            {"attributes": [], "classes": [], "budget": 1.5},
            r"budget is 1.5, must be a whole number in \[0, 1000000\]",
        ),
        ({"attributes": [], "classes": [], "alpha": True}, r"alpha is True, must lie in \[0, 1\]"),
        ({"attributes": [{}], "classes": []}, r"attributes\[0\].name is None, must be text"),
        ({"attributes": [{"name": "x", "kind": "odd"}], "classes": []}, r"attributes\[0\].kind must be"),
        (
            {"attributes": [{"name": "x", "missing": "no"}], "classes": []},
            r"attributes\[0\].missing is 'no', must be one of",
        ),
        ({"attributes": [{"name": "x", "kind": []}], "classes": []}, r"attributes\[0\].kind must be"),
        (
            {"attributes": [{"name": "x", "edges": [10**400]}], "classes": []},
            r"edges\[0\] is 1000.*, must be a finite number",
        ),
        (
            {"attributes": [], "classes": [], "presentation": {"series": [{"title": "t"}]}},
            r"series\[0\].attributes is None, must be a list of names",
        ),
        ({"attributes": [{"name": "x", "values": [], "bins": 3}], "classes": []}, "bins has no meaning"),
        ({"attributes": [{"name": "x", "bins": "3"}], "classes": []}, "bins is '3', must be a whole number"),
        (
            {"attributes": [{"name": "x", "edges": ["3"]}], "classes": []},
            r"edges\[0\] is '3', must be a finite number",
        ),
    ],
)
def test_bad_specifications_name_the_key(content: object, words: str) -> None:
    with pytest.raises(FileError, match=words):
        from_dict(Path("spec.json"), content)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("s.json", b'{\n "a": }', "line 2, column 7: is not JSON"), ("s.toml", b"a = \nb = 1", "is not TOML: .*line 1"),
     ("s.toml", b"\xff", "byte 1 is not UTF-8")],
)  # fmt: skip
def test_specification_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words):
        read_specification(tmp_path / name)


@pytest.mark.parametrize(("name", "start"), [("s.json", ""), ("s.toml", "a = ")])
def test_specification_files_that_their_parser_does_not_survive(
    tmp_path: Path, name: str, start: str
) -> None:
    path = tmp_path / name
    for content, words in (
        ("9" * 5000, "has an integer with thousands of digits"),
        ("[" * 100_000, "is nested too deep"),
    ):
        path.write_text(start + content)
        with pytest.raises(FileError, match=words):
            read_specification(path)


@pytest.mark.parametrize("word", ["NA", "nan", "inf", "null"])
def test_numbers_with_words_for_missing_ones_do_not_become_names(tmp_path: Path, word: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,class\n1,x,o\n2,{word},s\n{word},y,o\n3,{word},s\n")
    where = rf"line 4, column 1 \(a\): '{word}' is not a finite number; .*--nominal a"
    with pytest.raises(FileError, match=where):
        infer_schema(open_table(path), class_column="class")
    as_names = infer_schema(open_table(path), class_column="class", nominal=["a"])
    assert as_names.attributes == (
        Nominal("a", sorted(["1", "2", "3", word])),
        Nominal("b", sorted(["x", "y", word])),
    )


def test_a_missing_value_is_named_as_the_format_writes_it(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"size": ["1", "big"], "colour": ["red"] * 2}), tmp_path / "t.parquet")
    tables = {
        "null": open_table(tmp_path / "t.parquet"),
        "?": table(tmp_path, "@attribute colour {red}\n@attribute size numeric\n@data\nred,big\n", "t.arff"),
        "an empty cell or ?": table(tmp_path, "colour,size\nred,big\n"),
    }
    for mark, opened in tables.items():
        with pytest.raises(FileError) as caught:
            list(Binding(opened, SPECIFICATION))
        assert f"'big' is not a finite number; {mark} is a missing value" in str(caught.value)


def test_a_column_of_such_words_alone_holds_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,class\nnone,o\nNA,s\n")
    assert infer_schema(open_table(path), class_column="class").attributes == (Nominal("a", ["NA", "none"]),)


def test_a_column_declared_numeric_holds_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a numeric\n@attribute c {x,y}\n@data\n1,x\nabc,y\n")
    with pytest.raises(FileError, match=r"line 6, column 1 \(a\): 'abc' is not a finite number"):
        infer_schema(open_table(path), class_column="c")


def test_a_file_that_says_when_queries_stop_is_read_if_it_says_what_all_do(tmp_path: Path) -> None:
    given = Specification([Numeric("x")], ["a", "b"])
    path = tmp_path / "all.json"
    path.write_text(json.dumps(to_dict(given) | {"ask": "to-the-budget"}))
    assert read_specification(path) == given
    path.write_text(json.dumps(to_dict(given) | {"ask": "while-contested"}))
    with pytest.raises(FileError, match=r"ask 'while-contested' is not offered any more; without it"):
        read_specification(path)


def test_a_presentation_is_read_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "look.toml"
    path.write_text(
        '[[attributes]]\nattribute = "x"\nunit = "mm"\n\n'
        '[[series]]\ntitle = "c"\nattributes = ["x", "y"]\nstep = 0.5\n\n'
        '[[media]]\nkind = "image"\ntitle = "m"\nurl = "https://a.example/{id}"\n'
    )
    look = read_presentation(path)
    assert look.series[0].step == 0.5
    attributes = [Numeric("x"), Numeric("y")]
    given = Specification(attributes, ["a", "b"], presentation=look)
    written = tmp_path / "all.json"
    written.write_text(json.dumps(to_dict(given)))
    assert read_specification(written).presentation == look
    for text, said in (
        ('[[attributes]]\ntitle = "t"\n', "attributes[0].attribute"),
        ('[[attribute]]\ntitle = "t"\n', "has no key 'attribute'"),
        ('[[media]]\nkind = "image"\ntitle = "m"\nurl = "ftp://a"\n', "media[0].url"),
    ):
        path.write_text(text)
        with pytest.raises(FileError) as caught:
            read_presentation(path)
        assert said in str(caught.value)
