"""The files in tests/cases: each is read as the table in their README says, or refused in these words."""

from pathlib import Path
from typing import Any

import pytest

from quercus.files import open_table, read
from quercus.files.annotations import read_annotations
from quercus.files.answers import AnswerColumns, AnswerFile

CASES = Path(__file__).parents[2] / "cases"
TREES = ("oak", "ash", "elm")


@pytest.mark.parametrize(
    ("case", "class_name", "classes", "labels"),
    [
        ("class_with_bar", "region", ("Fife", "Fife|Kinross", "Kinross"),
         ("Fife|Kinross", "Fife", "Kinross", {"Fife", "Kinross"})),
        ("class_question_mark", "sign", ("!", "?"), ("?", "!", None, {"!", "?"})),
    ],
)  # fmt: skip
def test_labels_of_a_data_file(
    case: str, class_name: str, classes: tuple[str, ...], labels: tuple[Any, ...]
) -> None:
    found = read(CASES / case / "in.csv", class_name=class_name)
    assert (found.classes, found.labels) == (classes, labels)


def test_labels_of_a_file_of_answers() -> None:
    found = AnswerFile(open_table(CASES / "wide_answers_escaped/in.csv"), ("a", "b", "a|b"), AnswerColumns())
    assert [(each.item, each.labeller, each.label) for each in found] == [
        ("r1", "ann", "a|b"), ("r1", "bob", {"a", "b"}), ("r2", "bob", {"a": 1.0, "a|b": 0.5}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "tool", "item", "answers"),
    [
        ("label_studio_json_min/in.json", "label-studio", "leaf",
         [("l4.jpg", "2", "oak"), ("l6.jpg", "3", {"ash", "oak"})]),
        ("label_studio_csv/in.csv", "label-studio", "leaf",
         [("l4.jpg", "2", "oak"), ("l6.jpg", "3", {"ash", "oak"})]),
        ("doccano_jsonl/in.jsonl", "doccano", "id", [("l4", "", "oak"), ("l6", "", {"ash", "oak"})]),
        ("doccano_csv/in.csv", "doccano", "id", [("l4", "", "oak"), ("l6", "", {"ash", "oak"})]),
        ("prodigy_binary/in.jsonl", "prodigy", "id",
         [("l1", "ann", "oak"), ("l2", "ann", "elm"), ("l3", "ann", {"ash", "elm"})]),
        ("prodigy_binary_times/in.jsonl", "prodigy", "id", [("l7", "", "oak"), ("l8", "", "elm")]),
    ],
)  # fmt: skip
def test_exports_of_annotation_tools(file: str, tool: str, item: str, answers: list[Any]) -> None:
    found = read_annotations(CASES / file, tool, TREES, id_field=item)
    assert [(each.item, each.labeller, each.label) for each in found] == answers


def test_classes_of_truth_in_any_spelling() -> None:
    found = read_annotations(CASES / "doccano_truth/in.jsonl", "doccano", ["false", "true"], id_field="id")
    assert [each.label for each in found] == ["true", "false", {"false", "true"}]


@pytest.mark.filterwarnings("ignore:.*has no name for the first column")
@pytest.mark.parametrize(
    ("file", "ignore", "names", "rows"),
    [
        ("arff_trailing_comma/in.arff", (), ("x",), [[0.5], [1.5]]),
        ("arff_range/in.arff", (), ("x",), [[0.5], [1.5]]),
        ("arff_spaces_of_other_scripts/in.arff", (), ("stop",), [[0.0], [1.0]]),
        ("arff_row_behind_data/in.arff", (), ("x",), [[0.5], [1.5]]),
        ("csv_sep_line/in.csv", (), ("x",), [[0.5], [1.5]]),
        ("csv_quote_after_blank/in.csv", (), ("x", "note"), [[0.5, 0.0], [1.5, 1.0]]),
        ("csv_unnamed_index/in.csv", (), ("x",), [[0.5], [1.5]]),
        ("csv_packed/gzip.csv", (), ("x",), [[0.5], [1.5]]),
        ("csv_packed/bzip2.csv", (), ("x",), [[0.5], [1.5]]),
        ("csv_packed/zip.zip", (), ("x",), [[0.5], [1.5]]),
        ("arff_ignored_types/in.arff", ("name", "taken", "mood"), ("x",), [[0.5], [1.5]]),
    ],
)
def test_attributes_and_values(
    file: str, ignore: tuple[str, ...], names: tuple[str, ...], rows: list[list[float]]
) -> None:
    found = read(CASES / file, class_name="class", ignore=ignore)
    assert tuple(each.name for each in found.attributes) == names
    assert found.values.tolist() == rows
    assert found.labels == ("up", "down")
