"""Labels never become an attribute in silence, and of two columns of labels none is taken in silence."""

from pathlib import Path
from typing import Any

import pytest

from quercus.experiments.datasets import read_set
from quercus.files import FileError, open_labels, open_table, read
from quercus.files.labels import read_truth
from quercus.files.schema import infer_schema

FRAME = ("cat", "dog", "bird")
PLAIN = "legs,skin,class\n4,fur,cat\n4,fur,dog\n2,feathers,bird\n"
NAMED = PLAIN.replace("class", "said")
SETS = "legs,answer_set,class\n4,cat|dog,cat\n4,dog,dog\n2,bird,bird\n"
VAGUE = "cat,dog,bird\n1,1,1\n1,1,1\n1,1,1\n"


def write(tmp_path: Path, content: str, name: str = "d.csv") -> Path:
    path = tmp_path / name
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("content", "column", "words"),
    [
        (PLAIN, "class", r"column 'class' is named like a class column, and would become an attribute"),
        (
            PLAIN.replace("class", "Class"),
            "Class",
            r"--class 'Class', .*--ignore 'Class', .*--attribute 'Class'",
        ),
        (NAMED, "said", r"column 'said' is of nothing but classes \(cat, dog, bird\)"),
        (NAMED.replace("bird", "?"), "said", r"column 'said' is of nothing but classes"),
        (NAMED.replace("4,fur,cat", "4,fur,cat|dog"), "said", r"column 'said' is of nothing but classes"),
    ],
)
def test_a_class_column_that_nobody_names(tmp_path: Path, content: str, column: str, words: str) -> None:
    table = open_table(write(tmp_path, content))
    with pytest.raises(FileError, match=words):
        infer_schema(table, class_column=None, frame=FRAME)
    left = infer_schema(table, class_column=None, frame=FRAME, ignore=[column])
    assert [each.name for each in left.attributes] == ["legs", "skin"]
    kept = infer_schema(table, class_column=None, frame=FRAME, attributes=[column])
    assert [each.name for each in kept.attributes] == ["legs", "skin", column]
    named = infer_schema(table, class_column=column, frame=FRAME)
    assert [each.name for each in named.attributes] == ["legs", "skin"]


def test_numbers_are_classes_where_all_of_them_are_there(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, "x,few,y\n.5,0,0\n.6,1,1\n.7,0,2\n"))
    with pytest.raises(FileError, match="column 'y' is of nothing but classes"):
        infer_schema(table, class_column=None, frame=("0", "1", "2"))


def test_attributes_may_share_their_values_with_the_classes(tmp_path: Path) -> None:
    found = read(write(tmp_path, "windy,play\nyes,no\nno,yes\nyes,yes\n"), class_name="play")
    assert [each.name for each in found.attributes] == ["windy"]


@pytest.mark.parametrize(("options", "column"), [({}, "answer_set"), ({"class_name": "answer_set"}, "class")])
def test_a_second_column_of_labels(tmp_path: Path, options: dict[str, Any], column: str) -> None:
    path = write(tmp_path, SETS)
    with pytest.raises(FileError, match=f"column '{column}' is .*--ignore '{column}'"):
        read(path, **options)
    assert [each.name for each in read(path, ignore=[column], **options).attributes] == ["legs"]


def test_the_truth_beside_a_label_file(tmp_path: Path) -> None:
    path, labels = write(tmp_path, NAMED), write(tmp_path, VAGUE, "l.csv")
    with pytest.raises(FileError, match="column 'said' is of nothing but classes"):
        read(path, label_file=labels)
    assert read(path, label_file=labels, class_name="said").truth == ("cat", "dog", "bird")


@pytest.mark.parametrize("frame", [None, FRAME])
def test_a_label_file_with_two_columns_of_labels(tmp_path: Path, frame: tuple[str, ...] | None) -> None:
    table = open_table(
        write(tmp_path, "row,user,answer_set,class\n0,u,cat|dog,cat\n1,u,dog,dog\n2,v,bird,bird\n")
    )
    with pytest.raises(FileError, match=r"the columns class, answer_set all hold labels; .*--label-column"):
        open_labels(table, frame)
    assert list(open_labels(table, frame, column="answer_set")) == [{"cat", "dog"}, "dog", "bird"]


def test_a_file_of_answers_with_two_columns_of_labels(tmp_path: Path) -> None:
    path = write(tmp_path, SETS)
    with pytest.raises(FileError, match=r"the columns 'class', 'answer_set' all hold labels; .*--class"):
        read_truth(path, None, FRAME)
    assert read_truth(path, "class", FRAME) == {"0": "cat", "1": "dog", "2": "bird"}


def test_experiments_say_it_by_kinds(tmp_path: Path) -> None:
    path = write(tmp_path, SETS)
    with pytest.raises(FileError, match="column 'answer_set' is") as caught:
        read_set(path, {})
    assert "--kinds" in caught.value.__notes__[0]
    for kind, names in (("id", ["legs"]), ("nominal", ["legs", "answer_set"])):
        assert [each.name for each in read_set(path, {"answer_set": kind}).attributes] == names


def test_words_for_what_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "x,c,class\n1,NA,a\nNA,p,b\n2,q,null\n")
    with pytest.raises(
        FileError, match=r"line 3, column 1 \(x\): 'NA' is not a finite number; .*--missing NA"
    ):
        read(path)
    found = read(path, missing=["NA", "null"])
    assert [each.name for each in found.attributes] == ["x", "c"]
    assert found.labels == ("a", "b", None)
    assert str(found.values.tolist()) == "[[1.0, nan], [nan, 0.0], [2.0, 1.0]]"
    arff = write(tmp_path, "@attribute x real\n@attribute c {a,b}\n@data\nNA,a\n2,b\n", "d.arff")
    assert str(read(arff, missing=["NA"]).values.tolist()) == "[[nan], [2.0]]"
