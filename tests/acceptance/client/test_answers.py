"""`quercus answers` and `quercus push --labels` of files of answers, as their users meet them."""

import csv
import io
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from integration.client.serving import QUERCUS
from pyarrow import parquet
from support.command_line import quercus

from quercus.client import Client, Nominal, Specification
from quercus.client.answers import Statement

CLASSES = ("red", "white", "rosé")
ROWS = 6


@pytest.fixture
def wine(server: str, name: str) -> str:
    """A model of six rows that asks."""
    with Client(server) as client:
        client.create_model(name, Specification([Nominal("colour", "abc")], CLASSES, budget=20))
        client.push(name, [{"colour": "abc"[i % 3]} for i in range(ROWS)], ids=[str(i) for i in range(ROWS)])
    return name


def run(server: str, *arguments: str, code: int = 0) -> str:
    done = quercus(*arguments, server=server)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def listed(server: str, model: str, *flags: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run(server, "answers", model, "--format", "csv", *flags))))


LONG = """picture,worker,answer,reliability,comment
0,ann,red,,"one, two"
0,bob,white,0.8,
1,ann,red|white,,
2,bob,red:1.0 white:0.5 rosé:0.0,,=HYPERLINK(1)
3,bob,{red}:0.25 {red|white}:0.75,,
4,cleo,,,
"""


def test_a_file_of_answers_is_stated_shown_corrected_and_written(
    server: str, wine: str, tmp_path: Path
) -> None:
    file = tmp_path / "crowd.csv"
    file.write_text(LONG)
    said = run(server, "push", wine, str(file), "--labels", "--item", "picture")
    assert "stated 5 answers of 2 labellers on 4 rows" in said
    again = run(server, "push", wine, str(file), "--labels", "--item", "picture")
    assert "(5 already there)" in again

    narrow = os.environ | {"COLUMNS": "80", "QUERCUS_SERVER": server, "NO_COLOR": "1"}
    screen = subprocess.run(
        [QUERCUS, "answers", wine], env=narrow, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert all(len(line) <= 80 for line in screen.splitlines()), screen
    assert "red|white" in screen
    assert "one, two" in screen
    found = listed(server, wine)
    assert [(each["item"], each["labeller"], each["answer"]) for each in found] == [
        ("0", "ann", "red"),
        ("0", "bob", "white"),
        ("1", "ann", "red|white"),
        ("2", "bob", "red:1.0 white:0.5 rosé:0.0"),
        ("3", "bob", "{red}:0.25 {red|white}:0.75"),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", each["time"]) for each in found)
    assert len(listed(server, wine, "--labeller", "ann")) == 2
    assert [each["answer"] for each in listed(server, wine, "--likeliest", "white", "--instance", "0")] == [
        "white"
    ]
    assert listed(server, wine, "--since", "2h") == found
    assert listed(server, wine, "--until", "1d") == []
    assert [each["item"] for each in listed(server, wine, "--newest", "2")] == ["2", "3"]

    number = found[0]["number"]
    run(
        server,
        "answers",
        wine,
        "--correct",
        number,
        "rosé",
        "--by",
        "ann",
        "--comment",
        "a second look",
    )
    first, *_, last = listed(server, wine, "--instance", "0")
    assert (first["state"], first["later"]) == ("replaced", last["number"])
    assert (last["answer"], last["former"], last["former_answer"]) == ("rosé", number, "red")
    assert "replaced by" in run(server, "answers", wine)
    run(server, "answers", wine, "--undo", last["number"], "--by", "ann")
    assert [each["state"] for each in listed(server, wine, "--instance", "0")] == [
        "replaced", "counts", "undone", "empty",
    ]  # fmt: skip


def test_a_corrected_answer_is_told_in_words(server: str, wine: str) -> None:
    with Client(server) as client:
        client.state(wine, [Statement("0", "red", "ann")])
    number = listed(server, wine)[0]["number"]
    told = run(server, "answers", wine, "--correct", number, "red|white", "--by", "ann")
    assert "0: red or white in place of red (number " in told
    assert "red or white" in run(server, "answers", wine)


@pytest.mark.slow
def test_what_is_written_can_be_pushed_again(server: str, wine: str, name: str, tmp_path: Path) -> None:
    file, written, lines = tmp_path / "crowd.csv", tmp_path / "said.csv", tmp_path / "said.jsonl"
    file.write_text(LONG)
    run(server, "push", wine, str(file), "--labels", "--item", "picture")
    run(server, "answers", wine, "--correct", listed(server, wine)[0]["number"], "rosé", "--by", "ann")
    run(server, "answers", wine, "-o", str(written), "--values")
    assert "exists" in run(server, "answers", wine, "-o", str(written), code=2)
    run(server, "answers", wine, "-o", str(written), "--force", "--values", "--for-spreadsheets")
    assert "'=HYPERLINK(1)" in written.read_text()
    run(server, "answers", wine, "-o", str(written), "--force")
    run(server, "answers", wine, "-o", str(lines), "--values")
    objects = [json.loads(line) for line in lines.read_text().splitlines()]
    assert objects[0] | {"time": "", "number": 0} == {
        "number": 0, "time": "", "item": "0", "labeller": "ann", "answer": "red", "kind": "stated",
        "state": "replaced", "reliability": 1.0, "comment": "one, two", "took_s": None, "query": None,
        "former": None, "former_answer": None, "later": objects[-1]["number"], "conflict": False, "class": None,
        "shown": None, "colour": "a",
    }  # fmt: skip
    other = f"{name}-again"
    with Client(server) as client:
        client.create_model(other, Specification([Nominal("colour", "abc")], CLASSES))
        client.push(other, [{"colour": "a"}] * ROWS, ids=[str(i) for i in range(ROWS)])
        run(server, "push", other, str(written), "--labels")
        for i in range(ROWS):
            assert client.get_instance(other, str(i)).contour == pytest.approx(
                client.get_instance(wine, str(i)).contour
            )


def test_parquet_holds_what_csv_holds(server: str, wine: str, tmp_path: Path) -> None:
    crowd, table, text = tmp_path / "crowd.csv", tmp_path / "said.parquet", tmp_path / "said.csv"
    run(server, "answers", wine, "-o", str(table), "--values")
    empty = parquet.read_table(table)
    crowd.write_text(LONG)
    run(server, "push", wine, str(crowd), "--labels", "--item", "picture")
    run(server, "answers", wine, "--correct", listed(server, wine)[0]["number"], "rosé", "--by", "ann")
    with Client(server) as client:
        client.wait_grown(wine)
        client.answer(client.lease(wine, "ann", wait_s=30).queries[0], {"red", "white"}, took_s=1.5)
    run(server, "answers", wine, "-o", str(table), "--values", "--force")
    run(server, "answers", wine, "-o", str(text), "--values")
    said = parquet.read_table(table)
    assert (empty.num_rows, said.num_rows) == (0, 7)
    assert said.schema == empty.schema
    kinds = {field.name: str(field.type) for field in said.schema}
    assert {name: kind for name, kind in kinds.items() if kind != "string"} == {
        "number": "int64", "reliability": "double", "took_s": "double", "query": "int64", "former": "int64",
        "later": "int64", "conflict": "bool",
    }  # fmt: skip
    cells = [["" if cell is None else str(cell) for cell in row.values()] for row in said.to_pylist()]
    assert [list(kinds), *cells] == list(csv.reader(text.read_text().splitlines()))
    for name, flags in (("said.parquet.gz", ()), ("said.gz", ("--format", "parquet"))):
        run(server, "answers", wine, "-o", str(tmp_path / name), *flags, code=2)
        assert not (tmp_path / name).exists()


def test_answers_to_queries_are_shown_and_corrected(server: str, wine: str) -> None:
    with Client(server) as client:
        client.wait_grown(wine)
        query = client.lease(wine, "ann", wait_s=30).queries[0]
        client.answer(query, {"red", "white"}, comment="hard to tell")
    (found,) = listed(server, wine)
    assert (found["answer"], found["kind"], found["query"]) == ("red|white", "answered", str(query.number))
    assert "did not answer it" in run(
        server, "answers", wine, "--correct", found["number"], "red", "--by", "bob", code=1
    )
    run(server, "answers", wine, "--correct", found["number"], "red", "--by", "ann")
    run(server, "answers", wine, "--undo", found["number"], "--by", "ann")
    assert [(each["kind"], each["answer"], each["former_answer"]) for each in listed(server, wine)] == [
        ("answered", "red|white", ""),
        ("corrected", "red", "red|white"),
        ("undone", "", "red"),
    ]


def test_a_wide_file_has_a_column_for_each_labeller(server: str, wine: str, tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text("w1,w2,class\nred,white,red\nwhite,,white\n")
    said = run(server, "push", wine, str(file), "--labels")
    assert "stated 3 answers of 2 labellers on 2 rows" in said
    assert "columns not sent: class" in said
    assert [(each["item"], each["labeller"], each["answer"]) for each in listed(server, wine)] == [
        ("0", "w1", "red"),
        ("0", "w2", "white"),
        ("1", "w1", "white"),
    ]


@pytest.mark.parametrize(
    ("content", "flags", "words"),
    [
        ("item,worker,answer\n0,ann,red\nno,ann,red\nnay,ann,red\n", (), ("line 3", "'no', 'nay'", "2 of 3")),
        ("item,worker,answer\n0,ann,red\n1,ann,rouge\n", (), ("line 3, column 3 (answer)", "'rouge'")),
        ("item,worker,answer\n0,,red\n", (), ("line 2, column 2 (worker)", "labeller is missing")),
        ("item,worker,answer\n,ann,red\n", (), ("line 2, column 1 (item)", "item is missing")),
        ("item,worker,answer,reliability\n0,a,red,2\n", (), ("line 2", "'2' is not a reliability")),
        ("item,worker,opinion\n0,ann,red\n", (), ("which column holds the answer", "--answer-column")),
        ("thing,worker,answer\n0,ann,red\n", (), ("which column holds the item", "--item")),
        ("item,worker,answer\n0,ann,red\n", ("--item", "what"), ("no column 'what'", "--item")),
        ("item,worker,answer\n", (), ("a header but no answers",)),
        ("a,b,c\nx,y,z\n", (), ("which columns hold the item", "'x' in 'a'")),
    ],
)
def test_what_is_wrong_with_a_file_is_named(
    content: str, flags: tuple[str, ...], words: tuple[str, ...], server: str, wine: str, tmp_path: Path
) -> None:
    file = tmp_path / "crowd.csv"
    file.write_text(content)
    said = run(server, "push", wine, str(file), "--labels", *flags, code=1)
    assert all(word in said for word in words), said
    with Client(server) as client:
        assert client.get_model(wine).sequence_committed == ROWS


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--since", "yesterday"), 2, "is not a time"),
        (("--since", "0001-01-01T00:00+10:00"), 2, "is not a time"),
        (("--since", "1h", "--until", "2h"), 1, "must be later than since"),
        (("--likeliest", "green"), 1, "'green', which is not a class; the classes are red, white, rosé"),
        (("--instance", "nowhere"), 1, "nowhere does not exist"),
        (("--format", "xml"), 2, "not one of csv, jsonl, parquet, arrow"),
        (("--format", "parquet"), 2, "needs a file"),
        (("--force",), 2, "--force is for files"),
        (("-o", "answers.txt"), 2, "must end in .csv"),
        (("--correct", "99", "red"), 1, "has no answer with number 99"),
        (("--correct", "99", "red", "--undo", "98"), 2, "mutually exclusive"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_named(
    flags: tuple[str, ...], code: int, words: str, server: str, wine: str
) -> None:
    said = run(server, "answers", wine, *flags, code=code)
    assert words in " ".join(re.sub(r"[│╭╮╰╯─]", " ", said).split()), said


def test_there_are_no_answers_yet(server: str, wine: str) -> None:
    said = run(server, "answers", wine)
    assert said.strip() == f"there are no answers about {wine}'s rows yet; begin with: quercus label {wine}"


def test_no_answer_passes_the_filter(server: str, wine: str) -> None:
    said = run(server, "answers", wine, "--labeller", "nobody")
    assert said.strip() == f"no answer about {wine}'s rows passes the filter; all: quercus answers {wine}"


def test_answers_about_classes_of_any_name_are_the_same_after_writing_and_pushing(
    server: str, name: str, tmp_path: Path
) -> None:
    """The class R|B is not the set of R and B, and the class ? is a label."""
    classes, file = ("R|B", "R", "B", "?", " {a:1}"), tmp_path / "said.csv"
    said: list[Any] = ["R|B", {"R", "B"}, "?", {"?": 1.0, " {a:1}": 0.5}, {frozenset({"R|B", " {a:1}"}): 0.5,
                       frozenset(classes): 0.5}, " {a:1}"]  # fmt: skip
    found = []
    with Client(server) as client:
        for model in (name, f"{name}-again"):
            client.create_model(model, Specification([Nominal("colour", "abc")], classes))
            client.push(model, [{"colour": "a"}] * len(said), ids=[str(i) for i in range(len(said))])
            if model == name:
                client.state(model, [Statement(str(i), label, "ann") for i, label in enumerate(said)])
                run(server, "answers", model, "-o", str(file))
            else:
                run(server, "push", model, str(file), "--labels")
            found.append(
                [(each.instance, each.labeller, each.label, each.text) for each in client.answers(model)]
            )
    assert len(found[0]) == len(said)
    assert found[0] == found[1]
