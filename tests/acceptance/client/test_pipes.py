"""Rows from standard input: as they come, with refused rows named, and both ends of the pipe free to end it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS
from support.command_line import quercus

from quercus.client import Client, Nominal, Numeric, Specification

SECONDS = 60.0
"""Within this a started command has done what a test waits for, on a machine that is busy."""
SOON_S = 1.0
"""Within this a row arrives, once the command runs."""


@pytest.fixture
def wine(server: str, name: str) -> str:
    """A model of two attributes."""
    with Client(server) as client:
        client.create_model(
            name, Specification([Numeric("alcohol"), Nominal("tint", ["dark", "pale"])], ["red", "white"])
        )
    return name


@pytest.fixture
def piped(server: str) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts commands whose standard input is a pipe; they are ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "QUERCUS_SERVER": server, "NO_COLOR": "1", "COLUMNS": "200"}
        started.append(
            subprocess.Popen(
                [QUERCUS, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                bufsize=1,
                env=environment,
            )
        )
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def rows_of(server: str, model: str, wanted: int, within_s: float) -> int:
    """Wait until a model has so many rows."""
    with Client(server) as client:
        end = time.monotonic() + within_s
        while (count := client.get_model(model).instance_count) < wanted and time.monotonic() < end:
            time.sleep(0.02)
        return count


def test_rows_of_csv_are_pushed_and_those_refused_are_named(server: str, wine: str) -> None:
    rows = "bottle,alcohol,tint,class\na,13.5,dark,red\nb,high,pale,white\nc,11,pale\nd,12,?,white\n"
    command = ("push", wine, "-", "--id-column", "bottle", "--labels")
    done = quercus(*command, server=server, stdin=rows)
    assert done.returncode == 1
    assert "pushed 2 rows" in done.stdout
    lines = done.stderr.splitlines()
    assert lines[0].startswith(
        "standard input: line 3 (id 'b'): refused: alcohol: 'high' is not a finite number"
    )
    assert lines[1].startswith(
        "standard input: line 4 (id 'c'): refused: the row has 3 cells, the header has 4"
    )
    assert "2 rows were refused" in lines[2]
    again = quercus(*command, server=server, stdin=rows)
    assert "pushed 2 rows" in again.stdout
    assert "(2 already there)" in again.stdout
    with Client(server) as client:
        assert {each.id: each.contour for each in client.instances(wine)} == {"a": (1, 0), "d": (0, 1)}


def test_objects_are_rows_and_their_field_id_names_them(server: str, wine: str, tmp_path: Path) -> None:
    objects = [
        '{"id": "a", "alcohol": 13.5, "tint": "dark", "station": 7}',
        "",
        '{"id": 2, "alcohol": null, "tint": "pale"}',
        '{"id": "c", "alcohol": [1], "tint": "pale"}',
        '{"id": "d", "alcohol": NaN}',
        '{"id": "e", "acidity": 3}',
        "13.5,dark",
        '{"alcohol": 12, "tint": "dark"}',
    ]
    rejected = tmp_path / "rejected.csv"
    command = ("push", wine, "-", "--rejected", str(rejected))
    done = quercus(*command, server=server, stdin="\n".join(objects))
    assert done.returncode == 1
    assert f"5 rows were refused: see {rejected}" in " ".join(done.stderr.split())
    reasons = rejected.read_text().splitlines()[1:]
    said = [
        "'alcohol' is [1], must be",
        "NaN is not a JSON number",
        "has no attribute of the model",
        "is not JSON",
    ]
    assert all(part in line for part, line in zip([*said, "the id is missing"], reasons, strict=True))
    with Client(server) as client:
        assert sorted(each.id for each in client.instances(wine)) == ["2", "a"]


@pytest.mark.parametrize(
    ("rows", "mark"),
    [('{"id": "b", "alcohol": "high"}', "null"), ("id,alcohol,tint\nb,high,dark", "an empty cell or ?")],
)
def test_a_missing_value_is_named_as_the_rows_write_it(server: str, wine: str, rows: str, mark: str) -> None:
    done = quercus("push", wine, "-", server=server, stdin=rows)
    said = f"'high' is not a finite number; {mark} is a missing value, and 'high' is one with --missing high"
    assert said in done.stderr


def test_labels_of_objects_may_be_sets_and_plausibilities(server: str, wine: str) -> None:
    labels = ["red", ["red", "white"], {"red": 1, "white": 0.25}, None, "rosé"]
    objects = [{"alcohol": k, "class": each} for k, each in enumerate(labels)]
    done = quercus("push", wine, "-", "--labels", server=server, stdin="\n".join(map(json.dumps, objects)))
    assert done.returncode == 1
    assert "line 5" in done.stderr
    assert "1 row was refused" in done.stderr
    line = '{"id": "w", "alcohol": 9, "class": {"red": 2}}\n'
    done = quercus("push", wine, "-", "--labels", server=server, stdin=line)
    assert "(id 'w'): refused: label: is 2.0 for class 'red', must lie in [0, 1]" in done.stderr
    with Client(server) as client:
        found = {each.id: each.contour for each in client.instances(wine)}
    assert found == {"0": (1, 0), "1": (1, 1), "2": (1, 0.25), "3": (1, 1)}


def test_a_row_of_a_slow_producer_arrives_within_a_second(server: str, wine: str, piped) -> None:  # type: ignore[no-untyped-def]
    pushing = piped("push", wine, "-")
    pushing.stdin.write('{"id": "a", "alcohol": 12}\n')
    assert rows_of(server, wine, 1, SECONDS) == 1
    for number in (2, 3):
        pushing.stdin.write(f'{{"id": "{number}", "alcohol": 12}}\n')
        assert rows_of(server, wine, number, 10 * SOON_S) == number
    pushing.send_signal(signal.SIGINT)
    printed, errors = pushing.communicate(timeout=SECONDS)
    assert (pushing.returncode, printed) == (130, "")
    # The acknowledgement of the last row may be on its way.
    assert errors.startswith(tuple(f"stopped; {k} rows stored; the same command continues" for k in (2, 3)))
    assert "Traceback" not in errors


def test_predictions_come_as_the_rows_come_until_the_reader_ends(server: str, wine: str, piped) -> None:  # type: ignore[no-untyped-def]
    with Client(server) as client:
        client.push(wine, [{"alcohol": 12, "tint": "dark"}] * 4, labels=["red"] * 4)
        client.wait_grown(wine)
    classifying = piped("classify", wine, "-", "--id-column", "bottle")
    classifying.stdin.write("bottle,alcohol,tint\na,12,dark\n")
    header = classifying.stdout.readline()
    assert header.startswith("id,row,class,")
    assert classifying.stdout.readline().startswith("a,0,red,")
    classifying.stdin.write("b,?,\n")
    assert classifying.stdout.readline().startswith("b,1,red,")
    classifying.stdout.close()
    for number in range(100):
        try:
            classifying.stdin.write(f"{number},12,dark\n")
        except BrokenPipeError:
            break
        time.sleep(0.05)
    assert classifying.wait(timeout=SECONDS) == 1
    assert classifying.stderr.read() == ""


def test_objects_are_classified_as_objects(server: str, wine: str) -> None:
    with Client(server) as client:
        client.push(wine, [{"alcohol": 12, "tint": "dark"}] * 4, labels=["red"] * 4)
        client.wait_grown(wine)
    objects = '{"id": "a", "alcohol": 12, "tint": "dark"}\n{"id": "b", "tint": {}}\n{"id": "c", "alcohol": "11..13"}\n'
    done = quercus("classify", wine, "-", server=server, stdin=objects)
    assert done.returncode == 1
    assert [
        (each["id"], each["row"], each["class"]) for each in map(json.loads, done.stdout.splitlines())
    ] == [
        ("a", 0, "red"),
        ("c", 2, "red"),
    ]
    assert "line 2: refused" in done.stderr.replace(" (id 'b')", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "standard input: is empty"),
        ("alcohol,tint\n", "has a header but no rows"),
        ("alcohol\n1\n", "has no column for the model's tint"),
        ("PAR1", "is Parquet or Arrow: write it to a file, and name the file"),
    ],
)
def test_what_is_no_table_is_refused(server: str, wine: str, given: str, said: str) -> None:
    for command in ("push", "classify"):
        done = quercus(command, wine, "-", server=server, stdin=given)
        assert done.returncode == 1
        assert said in " ".join(done.stderr.split())


def test_answers_and_exports_are_files(server: str, wine: str) -> None:
    for option in (("--labels", "--item", "id"), ("--from", "argilla"), ("--label-file", "/dev/null")):
        done = quercus("push", wine, "-", *option, server=server)
        assert done.returncode == 2
        assert "for files" in done.stderr
