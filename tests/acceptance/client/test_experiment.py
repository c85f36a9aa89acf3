"""``quercus experiment`` as its users meet it."""

import csv
import gzip
import json
from pathlib import Path

import pytest
from support.command_line import quercus

RULE = [(x, "yes" if x >= 6 else "no") for x in range(12)]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def experiment(*arguments: str) -> str:
    done = quercus("experiment", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.release
def test_labels_on_scikit_learns_iris(tmp_path: Path) -> None:
    out = tmp_path / "labels"
    given = [
        "labels",
        "--sets",
        "iris",
        "--corruption",
        "V,U",
        "--levels",
        "0,0.9",
        "--folds",
        "3",
        "--repeats",
        "1",
    ]
    given += ["--methods", "c45,ek-nn", "--output", str(out)]
    said = experiment(*given)
    assert f"drew {out / 'V.png'}" in said
    assert len(rows_of(out)) == 2 * 2 * 2 * 3
    best = [float(row["accuracy"]) for row in rows_of(out) if row["sweep"] == "V" and row["level"] == "0.0"]
    assert sum(best) / len(best) > 0.8
    before = (out / "results.csv").read_bytes()
    (out / "U.png").unlink()
    experiment(*given)  # nothing is left to do
    assert (out / "results.csv").read_bytes() == before
    assert (out / "U.png").exists()
    (out / "U.png").unlink()
    experiment("plot", str(out))
    assert (out / "U.png").exists()
    assert "| C4.5, precise rows |" in experiment("table", str(out), "--level", "0.9")


@pytest.mark.slow
def test_queries_beside_random_ones(tmp_path: Path) -> None:
    given = [
        "queries",
        "--sets",
        "iris",
        "--folds",
        "3",
        "--repeats",
        "1",
        "--max-answers",
        "10",
        "--step",
        "5",
    ]
    experiment(*given, "--methods", "published,random,margin", "--output", str(tmp_path))
    assert {row["level"] for row in rows_of(tmp_path)} == {"0.0", "5.0", "10.0"}
    assert {row["method"] for row in rows_of(tmp_path)} == {"published", "random", "margin"}
    assert (tmp_path / "queries.png").exists()


@pytest.mark.slow
def test_the_restaurants_learning_curve(tmp_path: Path) -> None:
    experiment(
        "restaurant", "--sizes", "5,100", "--trials", "8", "--methods", "id3", "--output", str(tmp_path)
    )
    rows = rows_of(tmp_path)
    few, many = (
        [float(row["accuracy"]) for row in rows if row["level"] == level] for level in ("5.0", "100.0")
    )
    assert sum(few) < sum(many)
    assert sum(many) / 8 > 0.85


@pytest.mark.slow
def test_a_folder_of_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lines = ["id,x,class", *(f"{row},{x},{klass}" for row, (x, klass) in enumerate(RULE * 3))]
    (data / "rule.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    kinds = tmp_path / "KINDS.json"
    kinds.write_text(json.dumps({"rule.csv.gz": {"id": "id", "x": "numeric", "class": "nominal"}}))
    assert "rule" in experiment("list", "--data", str(data))
    out = tmp_path / "out"
    given = [
        "--data",
        str(data),
        "--kinds",
        str(kinds),
        "--folds",
        "3",
        "--repeats",
        "1",
        "--output",
        str(out),
    ]
    said = experiment("learners", *given, "--vacuous", "0", "--methods", "c45,id3")
    assert "| **100.0** |" in said  # one repeat has no standard error


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["labels", "--sets", "irises"], 1, "sets: has no 'irises'"),
        (["labels", "--methods", "c5"], 2, "there is no 'c5'"),
        (["labels", "--levels", "0:2:1"], 2, "must be FROM:TO:STEP"),
        (["labels", "--corruption", "W"], 2, "'W' is not one of V, I, N, U"),
        (["labels", "--sets", "iris", "--folds", "200", "--repeats", "1"], 1, "must lie in [2, 150]"),
        (["plot", "{out}"], 1, "cannot be read"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    where = [] if arguments[0] == "plot" else ["--output", str(tmp_path)]
    done = quercus("experiment", *(a.format(out=tmp_path) for a in arguments), *where)
    assert done.returncode == code
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_other_settings_do_not_mix(tmp_path: Path) -> None:
    given = [
        "labels",
        "--sets",
        "iris",
        "--levels",
        "0",
        "--repeats",
        "1",
        "--methods",
        "c45",
        "--output",
        str(tmp_path),
    ]
    experiment(*given, "--folds", "3")
    done = quercus("experiment", *given, "--folds", "4")
    assert done.returncode == 1
    assert "made with folds 3, not 4; give another --output" in " ".join(done.stderr.split())
