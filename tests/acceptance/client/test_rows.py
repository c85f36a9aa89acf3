"""`quercus rows`: rows by filter and order, on the screen and in files."""

import csv
import io
import json
from pathlib import Path

import pytest
from support.command_line import quercus

from quercus.client import Client, Nominal, Numeric, Specification
from quercus.client.answers import Statement


@pytest.fixture
def wine(server: str, name: str) -> str:
    """Ten rows, of which the file labels four, and ann two."""
    with Client(server) as client:
        attributes = [Nominal("colour", "abc"), Numeric("size")]
        client.create_model(name, Specification(attributes, ["red", "a|b"], budget=0))
        rows = [{"colour": "abc"[i % 3], "size": i / 2} for i in range(10)]
        labels = ["red" if i < 4 else None for i in range(10)]
        client.push(name, rows, labels, ids=[f"r{i}" for i in range(10)])
        client.state(name, [Statement("r0", "a|b", "ann"), Statement("r5", "a|b", "ann")])
        client.wait_grown(name)
    return name


def test_the_same_filters_choose_rows_for_the_screen_and_for_files(
    server: str, wine: str, tmp_path: Path
) -> None:
    shown = quercus("rows", wine, "--labeller", "ann", server=server)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert [line[0] for line in lines[1:]] == ["r0", "r5"]
    assert "size" in shown.stdout
    assert "2.5" in shown.stdout

    found = quercus("rows", wine, "--unlabelled", "--format", "csv", server=server)
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    assert [row["item"] for row in rows] == ["r4", "r6", "r7", "r8", "r9"]
    assert {row["class"] for row in rows} == {""}
    assert rows[0] | {"guess": "", "doubt": ""} == {
        "item": "r4", "class": "", "guess": "", "doubt": "", "conflict": "False", "colour": "b", "size": "2.0"
    }  # fmt: skip
    doubts = [float(row["doubt"]) for row in rows]
    ordered = quercus("rows", wine, "--unlabelled", "--order", "doubt desc", "--json", server=server)
    assert [json.loads(line)["doubt"] for line in ordered.stdout.splitlines()] == sorted(doubts, reverse=True)

    file = tmp_path / "rows.jsonl"
    wrote = quercus("rows", wine, "--search", "R5", "-o", str(file), server=server)
    assert wrote.stderr == f"wrote 1 rows to {file}\n"
    assert json.loads(file.read_text())["class"] == "a\\|b"


def test_a_page_of_the_screen_says_how_many_there_are(server: str, wine: str) -> None:
    shown = quercus("rows", wine, "--first", "3", server=server)
    assert shown.stdout.splitlines()[-1] == "the first 3 of 10; more with --first, all with -o FILE"
    none = quercus("rows", wine, "--likeliest", "red", "--unexpected", "--search", "zzz", server=server)
    assert none.stdout == f"no row of {wine} passes the filter\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--doubt", "2"], "filter: doubt: is '2.0', must be a number in [0, 1]"),
        (["--likeliest", "rad"], "filter: class: 'rad' is not a class; did you mean 'red'?"),
        (["--order", "size"], "order by: is 'size', must be one of pushed, said, doubt"),
        (["--force"], "--force is for files"),
    ],
)
def test_wrong_flags_are_answered_by_what_may_stand_there(
    server: str, wine: str, flags: list[str], said: str
) -> None:
    done = quercus("rows", wine, *flags, server=server)
    assert done.returncode in {1, 2}
    assert said in " ".join(done.stderr.replace("│", " ").split())
