"""Labels that are sets, plausibilities or masses: from files, through a live server and offline."""

import json
from pathlib import Path

import pytest
from support.command_line import quercus

from quercus.client import Client

DATA = "size,colour,class\n1,red,a\n2,red,a|b\n3,blue,?\n4,blue,b|c\n5,blue,c\n"
MASSES = "a,b,c,a|b,a|b|c\n1,0,0,0,0\n0,.5,0,.5,0\n0,0,0,0,1\n0,.25,.25,0,.5\n0,0,1,0,0\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(DATA)
    return path


@pytest.fixture
def masses(tmp_path: Path) -> Path:
    path = tmp_path / "masses.csv"
    path.write_text(MASSES)
    return path


def labels(server: str, name: str) -> list[object]:
    with Client(server) as client:
        return [each.history[0].label for each in client.instances(name)]


def test_sets_in_the_class_column(server: str, name: str, data: Path) -> None:
    created = quercus("models", "create", name, str(data), "--json", server=server)
    assert json.loads(created.stdout)["specification"]["classes"] == ["a", "b", "c"]
    done = quercus("push", name, str(data), "--labels", server=server)
    assert done.returncode == 0, done.stderr
    assert labels(server, name) == ["a", {"a", "b"}, None, {"b", "c"}, "c"]


def test_masses_from_a_file(server: str, name: str, data: Path, masses: Path) -> None:
    assert quercus("models", "create", name, str(data), server=server).returncode == 0
    done = quercus("push", name, str(data), "--label-file", str(masses), server=server)
    assert done.returncode == 0, done.stderr
    second, third = labels(server, name)[1:3]
    assert second == {frozenset("b"): 0.5, frozenset("ab"): 0.5}
    assert third == {frozenset("abc"): 1.0}


def test_weighted_rows_are_refused(server: str, name: str, data: Path, tmp_path: Path) -> None:
    assert quercus("models", "create", name, str(data), server=server).returncode == 0
    weighted = tmp_path / "w.arff"
    weighted.write_text("@attribute size real\n@attribute colour {red,blue}\n@data\n1,red\n2,red,{3}\n")
    done = quercus("push", name, str(weighted), server=server)
    assert done.returncode == 1
    assert "line 5: the row has the weight 3; a model counts every row once" in done.stderr
    offline = quercus("induce", str(weighted), "--class", "colour")
    assert (offline.returncode, "gives weights to its rows" in offline.stderr) == (1, True)


@pytest.mark.slow
def test_induction_from_masses_and_from_plausibilities_agree(
    data: Path, masses: Path, tmp_path: Path
) -> None:
    """Learning needs the contours of the labels alone."""
    contours = tmp_path / "contours.csv"
    contours.write_text("c,b,a\n0,0,1\n0,1,.5\n1,1,1\n.75,.75,.5\n1,0,0\n")
    trees = [
        json.loads(quercus("induce", str(data), "--label-file", str(file), "--json").stdout)["tree"]
        for file in (masses, contours)
    ]
    assert trees[0]["count"] == 5
    assert trees[0]["theta"] == pytest.approx(trees[1]["theta"][::-1], abs=1e-9)
    assert {k: pytest.approx(v) for k, v in trees[0]["intervals"].items()} == trees[1]["intervals"]


def test_answers_may_be_sets(data: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.csv"
    plain.write_text("\n".join(line.rpartition(",")[0] for line in DATA.splitlines()))
    vacuous = tmp_path / "vacuous.csv"
    vacuous.write_text("a,b,c\n" + "1,1,1\n" * 5)
    files = ("--label-file", str(vacuous), "--truth", str(data))
    done = quercus("induce", str(plain), *files, "--budget", "4", "--json")
    assert done.returncode == 0, done.stderr
    assert (
        len(json.loads(done.stdout)["queries"]) == 5
    )  # four answers and one "cannot tell", which costs nothing


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("push", "m", "{data}", "--label-column", "x"), 2, "names a column of --label-file"),
        (("induce", "{data}", "--label-file", "{masses}", "--label-column", "x"), 1, "no column 'x'"),
        (
            (
                "induce",
                "{short}",
            ),
            1,
            "has no column left to learn from",
        ),
        (("push", "{name}", "{data}", "--label-file", "{short}"), 1, "fewer labels"),
    ],
)
def test_mistakes(
    server: str,
    name: str,
    data: Path,
    masses: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    short = tmp_path / "short.csv"
    short.write_text("class\na\n")
    assert quercus("models", "create", name, str(data), server=server).returncode == 0
    places = {"data": data, "masses": masses, "name": name, "short": short}
    done = quercus(*(each.format(**places) for each in arguments), server=server)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
