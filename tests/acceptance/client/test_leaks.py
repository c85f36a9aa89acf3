"""Commands that read files refuse to learn the truth as an attribute, and words for what is missing are told."""

from pathlib import Path

import pytest
from support.command_line import quercus

from quercus.client import Client, Nominal, Numeric, Specification

DATA = "legs,answer_set,class\n4,cat|dog,cat\n4,dog,dog\n2,bird,bird\n"
CLASSES = ("--classes", "cat,dog,bird")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(DATA)
    return path


def test_a_class_column_that_nobody_named(server: str, name: str, data: Path) -> None:
    refused = quercus("models", "create", name, str(data), *CLASSES, server=server)
    assert (refused.returncode, "'class'" in refused.stderr, "--ignore" in refused.stderr) == (1, True, True)
    named = quercus(
        "models", "create", name, str(data), *CLASSES, "--class", "class", "--ignore", "answer_set", server=server
    )  # fmt: skip
    assert named.returncode == 0, named.stderr
    with Client(server) as client:
        assert [each.name for each in client.get_model(name).specification.attributes] == ["legs"]


@pytest.mark.slow
def test_words_for_what_is_missing(server: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("x,c\n1,p\nN/A,q\n2,null\n")
    with Client(server) as client:
        client.create_model(name, Specification([Numeric("x"), Nominal("c")], ["a", "b"]))
        client.wait_grown(name)
    for command in ("push", "classify"):
        refused = quercus(command, name, str(path), server=server)
        assert (refused.returncode, "'N/A'" in refused.stderr) == (1, True)
        assert "--missing" in refused.stderr
        done = quercus(command, name, str(path), "--missing", "NA,N/A", "--missing", "null", server=server)
        assert done.returncode == 0, done.stderr
    with Client(server) as client:
        assert [dict(each.values) for each in client.instances(name)] == [
            {"x": 1.0, "c": "p"},
            {"x": None, "c": "q"},
            {"x": 2.0, "c": None},
        ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--where", "colr=red"),
            "--where: 'colr' is not an attribute; did you mean 'color'? There are color, x",
        ),
        (
            ("--where", "color=rad"),
            "--where: 'rad' is not a value of color; did you mean 'red'? There are red, blue",
        ),
        (("--where", "x=1"), "--where: 'x' is numeric, a filter takes names"),
        (("--classes-known", "cat"), "--classes-known: 'cat' is not a class; there are a, b"),
    ],
)
def test_filters_of_what_does_not_exist(
    server: str, name: str, tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("class\na\nb\n")
    with Client(server) as client:
        client.create_model(
            name, Specification([Nominal("color", ["red", "blue"]), Numeric("x")], ["a", "b"], budget=2)
        )
        client.push(name, [["red", 1.0], ["blue", 2.0]])
    done = quercus("label", name, "--truth", str(path), "--idle-s", "1", *flags, server=server)
    assert (done.returncode, words in done.stderr) == (1, True), done.stderr
