"""Exports of annotation tools: their public formats, and what is wrong with a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from quercus.files import FileError
from quercus.files.annotations import read_annotations

CLASSES = ("cat", "dog", "bird")


def read(tmp_path: Path, form: str, content: Any, **options: str) -> list[tuple[str, str, Any]]:
    path = tmp_path / "x.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return [
        (each.item, each.labeller, each.label) for each in read_annotations(path, form, CLASSES, **options)
    ]


def choices(names: list[str], by: Any = 3, from_name: str = "animal", **fields: Any) -> dict[str, Any]:
    result = {
        "id": "x1", "type": "choices", "from_name": from_name, "to_name": "image", "value": {"choices": names},
    }  # fmt: skip
    return {
        "id": 12,
        "completed_by": by,
        "was_cancelled": False,
        "lead_time": 4.2,
        "result": [result],
    } | fields


def test_label_studio(tmp_path: Path) -> None:
    tasks = [
        {
            "id": 1,
            "data": {"id": "a", "image": "/x.jpg"},
            "annotations": [
                choices(["cat"]),
                choices(["cat", "dog"], {"id": 4, "email": "ann@x.example"}),
                choices(["dog"], was_cancelled=True),
                choices([], result=[]),
            ],
            "predictions": [],
        },
        {"id": 2, "data": {"image": "/y.jpg"}, "annotations": [choices(["bird"], None)]},
    ]
    assert read(tmp_path, "label-studio", tasks) == [
        ("a", "3", "cat"),
        ("a", "ann@x.example", {"cat", "dog"}),
        ("2", "", "bird"),
    ]
    assert read(tmp_path, "label-studio", tasks, id_field="image")[0][0] == "/x.jpg"
    both = choices(["cat"])
    both["result"] += choices(["dog"], from_name="other")["result"]
    several = [{"id": 1, "annotations": [both]}]
    with pytest.raises(FileError, match=r"item 1 has several choices \(animal, other\).*--question"):
        read(tmp_path, "label-studio", several)
    assert read(tmp_path, "label-studio", several, question="other") == [("1", "3", "dog")]


def test_argilla(tmp_path: Path) -> None:
    records = [
        {
            "id": "r1",
            "fields": {"text": "miaow"},
            "metadata": {"row": 7},
            "suggestions": {"animal": {"value": "dog"}},
            "responses": {
                "animal": [{"value": "cat", "user_id": "u1"}, {"value": ["cat", "bird"], "user_id": "u2"},
                           {"value": "dog", "user_id": "u3", "status": "draft"}],
            },
        },
        {"id": "r2", "fields": {"text": "wuff"}, "responses": {}},
    ]  # fmt: skip
    assert read(tmp_path, "argilla", records) == [("r1", "u1", "cat"), ("r1", "u2", {"cat", "bird"})]
    assert read(tmp_path, "argilla", records, id_field="row")[0][0] == "7"
    records[0]["responses"]["sure"] = [{"value": "yes", "user_id": "u1"}]  # type: ignore[index]
    with pytest.raises(FileError, match="the questions animal, sure"):
        read(tmp_path, "argilla", records)


def test_prodigy(tmp_path: Path) -> None:
    lines = [
        {
            "text": "a",
            "meta": {"id": "r1"},
            "accept": ["cat"],
            "answer": "accept",
            "_annotator_id": "set-ann",
        },
        {"text": "b", "meta": {"id": "r2"}, "accept": ["cat", "dog"], "answer": "accept", "_session_id": "s"},
        {"text": "c", "id": 3, "label": "dog", "answer": "reject"},
        {"text": "d", "id": 4, "label": "dog", "answer": "accept"},
        {"text": "e", "id": 5, "label": "dog", "answer": "ignore"},
        {"text": "f", "id": 6, "accept": [], "answer": "accept"},
    ]
    assert read(tmp_path, "prodigy", "\n".join(map(json.dumps, lines)) + "\n") == [
        ("r1", "set-ann", "cat"),
        ("r2", "s", {"cat", "dog"}),
        ("3", "", {"cat", "bird"}),  # not a dog
        ("4", "", "dog"),
    ]


def test_a_row_whose_every_class_a_person_rejected_is_named(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"id": 1, "label": name, "answer": "reject"}) for name in CLASSES)
    with pytest.raises(FileError, match="item 3 rejects the last class of '1': none is left"):
        read(tmp_path, "prodigy", lines)


def test_a_text_may_hold_what_ends_a_line_elsewhere(tmp_path: Path) -> None:
    """Web pages hold separators of lines and paragraphs, and Prodigy writes them as they are."""
    line = json.dumps(
        {"text": "a\u2028b\x85c", "id": 1, "label": "dog", "answer": "accept"}, ensure_ascii=False
    )
    other = line.replace('"id": 1', '"id": 2')
    assert read(tmp_path, "prodigy", f"{line}\r\n\n{other}\n") == [("1", "", "dog"), ("2", "", "dog")]
    with pytest.raises(FileError, match="line 2, column 2: is not JSON"):
        read(tmp_path, "prodigy", line + "\n{")


@pytest.mark.parametrize(
    ("form", "content", "said"),
    [
        ("prodigy", "{}\n" + "9" * 5000, "line 2: has a whole number of thousands of digits"),
        (
            "prodigy",
            '{"id": "\\ud83c", "answer": "accept", "accept": ["cat"]}',
            "line 1: has half of a surrogate",
        ),
        ("prodigy", "{", "line 1, column 2: is not JSON"),
        ("prodigy", "7", "item 1 is int, must be an object"),
        ("prodigy", '{"id": 1, "answer": "accept", "accept": ["fish"]}', "item 1: 'fish' is not a class"),
        ("prodigy", '{"id": 1, "answer": "reject", "label": "fish"}', "item 1: 'fish' is not a class"),
        ("prodigy", '{"answer": "accept", "accept": ["cat"]}', "item 1 has no field 'id'"),
        ("prodigy", '{"id": 1, "answer": "accept"}', "neither accept nor label"),
        ("label-studio", [{"annotations": [choices(["cat"])]}], "item 1 has no field 'id'"),
        ("label-studio", [{"id": 1, "annotations": [choices(["fish"])]}], "'fish' is not a class"),
        ("argilla", [{"id": 1, "responses": {"q": [{"value": {"x": 1}, "user_id": "u"}]}}], "is not a class"),
        ("label-studio", "[" * 100_000, "is"),
        ("prodigy", '{"id": 1, "answer": [], "accept": ["cat"]}\n{', "line 2, column 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, form: str, content: Any, said: str) -> None:
    with pytest.raises(FileError) as caught:
        read(tmp_path, form, content)
    assert said in str(caught.value)
