"""Label files: masses, plausibilities, class columns with sets; and data read with its labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.belief.given import LabelReader
from quercus.belief.label import contour
from quercus.client import Nominal, Numeric
from quercus.files import FileData, FileError, FileTable, open_labels, open_table, read
from quercus.files.schema import class_column, infer_schema

MASSES = "A,B,C,A|B,A|B|C,hard_label,class\n.5,0,0,.3,.2,A,B\n0,0,1,0,0,C,C\n.333,0,0,.333,.333,A,A\n"
DATA = "x,colour,class\n1,red,a\n?,blue,a|b\n2.5,?,?\n"
A, B, C = "ABC"


def table(tmp_path: Path, content: str, name: str = "l.csv") -> FileTable:
    path = tmp_path / name
    path.write_text(content)
    return open_table(path)


@pytest.mark.parametrize("frame", [None, ("A", "B", "C"), ("C", "A", "B")])
def test_masses(tmp_path: Path, frame: tuple[str, ...] | None) -> None:
    source = open_labels(table(tmp_path, MASSES), frame)
    assert (source.form, source.classes) == ("masses", frame or ("A", "B", "C"))
    first, second, third = source
    assert first == {frozenset(A): 0.5, frozenset("AB"): 0.3, frozenset("ABC"): 0.2}
    assert second == {frozenset(C): 1.0}
    assert third == pytest.approx({frozenset(A): 1 / 3, frozenset("AB"): 1 / 3, frozenset("ABC"): 1 / 3})
    told = [contour(LabelReader(source.classes).read_label(label), 3) for label in (first, second)]
    expected = {A: (1.0, 0), B: (0.5, 0), C: (0.2, 1)}
    np.testing.assert_allclose(np.transpose(told), [expected[name] for name in source.classes])


def test_plausibilities_take_the_frame_from_the_header(tmp_path: Path) -> None:
    source = open_labels(table(tmp_path, "b,a\n.5,1\n"))
    assert (source.form, source.classes) == ("plausibilities", ("b", "a"))
    np.testing.assert_array_equal(list(source), [[0.5, 1.0]])


@pytest.mark.parametrize(
    ("content", "column", "frame"),
    [
        ("id,class\n1,b\n2,a|c\n3,?\n", None, ("a", "b", "c")),
        ("said\nb\na | c\n?\n", None, ("a", "b", "c")),
        ("id,said,class\n1,b,x\n2,c|a,x\n3,?,x\n", "said", ("a", "b", "c")),
    ],
)
def test_class_columns(tmp_path: Path, content: str, column: str | None, frame: tuple[str, ...]) -> None:
    source = open_labels(table(tmp_path, content), column=column)
    assert (source.form, source.classes) == ("class", frame)
    assert list(source) == ["b", frozenset("ac"), None]
    again = open_labels(table(tmp_path, content), ("c", "b", "a"), column=column)
    assert (again.classes, list(again)) == (("c", "b", "a"), list(source))


def test_a_class_column_may_hold_any_label_where_the_classes_are_known(tmp_path: Path) -> None:
    text = "class\na\na:1 b:0.5\n{a|b}:0.75 {b}:0.25\n?\n"
    assert list(open_labels(table(tmp_path, text), ("a", "b"))) == [
        "a", {"a": 1.0, "b": 0.5}, {frozenset("ab"): 0.75, frozenset("b"): 0.25}, None,
    ]  # fmt: skip
    with pytest.raises(
        FileError, match=r"has 'a:1 b:0\.5', which is not a class: name the classes with --classes"
    ):
        open_labels(table(tmp_path, text + "b\n"))
    assert open_labels(table(tmp_path, "class\n12:30\n13:45\nab:1\n")).classes == ("12:30", "13:45", "ab:1")


def test_a_class_of_the_frame_may_have_the_bar_in_its_name(tmp_path: Path) -> None:
    """With an escape always; without one where it is not a set of other classes."""
    opened = table(tmp_path, "class\na\\|b\na|b\na|b|c\na\\|b|c\n")
    assert list(open_labels(opened, ("a|b", "c", "a", "b"))) == [
        "a|b",
        frozenset("ab"),
        frozenset("abc"),
        frozenset({"a|b", "c"}),
    ]
    assert list(open_labels(table(tmp_path, "class\na|b\nc\n"), ("a|b", "c"))) == ["a|b", "c"]
    masses = open_labels(table(tmp_path, "a\\|b,c,a|b|c\n.5,0,.5\n"), ("a|b", "c", "a", "b"))
    assert next(iter(masses)) == {frozenset(["a|b"]): 0.5, frozenset("abc"): 0.5}


@pytest.mark.parametrize(
    ("content", "frame", "words"),
    [
        ("A,B,A|B\n.5,.3,.1\n", None, "line 2: the masses of sets of A, B sum to 0.9, must sum to 1"),
        ("A,B,A|B\n.5,.5,\n", None, r"line 2, column 3 \(A\|B\): a missing value is not a mass in \[0, 1\]"),
        ("A,B,A|B\n-.5,1,.5\n", None, r"line 2, column 1 \(A\): '-.5' is not a mass"),
        ("A,B,A|B,B|A\n1,0,0,0\n", None, r"line 1, column 4: the set 'B\|A' is that of column 3"),
        ("A|B,B|C\n1,0\n", None, r"line 1, column 2: in 'B\|C': C is not one of the classes A, B"),
        ("A,B,C,A|B\n0,0,1,0\n", None, "line 2: the masses of sets of A, B sum to 0, must"),
        ("A,B,A|\n1,0,0\n", ("A", "B"), r"column 3: in 'A\|':  is not one of the classes"),
        (
            "class\na\nd\n",
            ("a", "b"),
            r"line 3, column 1 \(class\): 'd' is not a class; the classes are a, b",
        ),
        ("class\na\na|d\n", ("a", "b"), r"line 3, column 1 \(class\): in 'a\|d': 'd' is not a class"),
        ("class\na\na\n", None, "class column 'class' has 1 class; 2 to 64"),
        ("class\na\na||b\n", None, "has a set with an empty name"),
        ("a,b,class\n.5,1,a\n", None, r"the columns a, b and 'class' both give labels"),
        ("a,b,class\n.5,1,a\n", ("a", "b"), r"the columns a, b and 'class' both give labels"),
    ],
)
def test_bad_label_files(tmp_path: Path, content: str, frame: tuple[str, ...] | None, words: str) -> None:
    with pytest.raises(FileError, match=words):
        list(open_labels(table(tmp_path, content), frame))


def test_a_label_column_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="--label-column: no column 'said'; the columns are a, b"):
        open_labels(table(tmp_path, "a,b\n1,1\n"), column="said")


def data(tmp_path: Path, content: str = DATA, name: str = "d.csv", **options: Any) -> FileData:
    return read(table(tmp_path, content, name).path, **options)


def test_data_with_a_class_column(tmp_path: Path) -> None:
    found = data(tmp_path)
    assert found.attributes == (Numeric("x"), Nominal("colour", ("blue", "red")))
    assert (found.classes, found.labels) == (("a", "b"), ("a", frozenset("ab"), None))
    assert found.truth == found.labels
    np.testing.assert_array_equal(found.values, [[1, 1], [np.nan, 0], [2.5, np.nan]])
    assert found.weights.tolist() == [1, 1, 1]


def test_data_as_a_data_frame(tmp_path: Path) -> None:
    frame = data(tmp_path).frame()
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {"x": "float64", "colour": "category"}
    assert frame["colour"].tolist()[:2] == ["red", "blue"]
    assert frame.isna().to_numpy().tolist() == [[False, False], [True, False], [False, True]]
    assert frame["colour"].cat.categories.tolist() == ["blue", "red"]


def test_data_with_a_label_file(tmp_path: Path) -> None:
    labels = table(tmp_path, "b,a,a|b\n.5,0,.5\n0,0,1\n1,0,0\n").path
    found = data(tmp_path, label_file=labels)
    assert found.classes == ("b", "a")
    assert found.truth == ("a", frozenset("ab"), None)
    assert found.labels is not None
    assert found.labels[0] == {frozenset("b"): 0.5, frozenset("ab"): 0.5}
    without = data(tmp_path, "x\n1\n2\n3\n", label_file=labels)
    assert (without.truth, without.labels) == (None, found.labels)


def test_data_from_arff_with_weights(tmp_path: Path) -> None:
    text = (
        "@attribute c {z, y}\n@attribute n real\n@attribute k {q, p}\n@data\ny,3,p,{2}\n{1 5},{.5}\n?,?,q\n"
    )
    found = data(tmp_path, text, "d.arff")
    assert (found.classes, found.labels) == (("q", "p"), ("p", "q", "q"))
    np.testing.assert_array_equal(found.values, [[1, 3], [0, 5], [np.nan, np.nan]])
    assert found.weights.tolist() == [2, 0.5, 1]


def test_data_without_labels(tmp_path: Path) -> None:
    found = data(tmp_path, "x,y\n1,2\n")
    assert (found.classes, found.labels, found.truth) == ((), None, None)


def test_more_or_fewer_labels_than_rows(tmp_path: Path) -> None:
    labels = table(tmp_path, "a,b\n1,1\n1,1\n").path
    with pytest.raises(FileError, match=r"l.csv: has 2 rows, .*d.csv has 3: one label per row"):
        data(tmp_path, label_file=labels)


def test_sets_in_a_class_column_are_no_classes_of_their_own(tmp_path: Path) -> None:
    declared = "@attribute x real\n@attribute class {b, a, 'a|b', c}\n@data\n1,'a|b'\n2,c\n"
    for name, content, classes in [("d.csv", DATA, ("a", "b")), ("d.arff", declared, ("b", "a", "c"))]:
        opened = table(tmp_path, content, name)
        assert infer_schema(opened, class_column=class_column(opened, None)).classes == classes
