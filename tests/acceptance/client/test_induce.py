"""``quercus induce`` grows what ``quercus models create`` and ``quercus push`` make a server grow."""

import json
from pathlib import Path

import pytest
from support.command_line import quercus

from quercus.client import Client
from quercus.specification.learners import learner_classes
from quercus.specification.parameter import parameters_of

FEWER = {"trees": 3, "folds": 2}
"""Parameters of learners that are slow by default."""
LABELS = ("low", "high", "low|high", "?")


def own_flags(learner: str) -> list[str]:
    known = {each.name for each in parameters_of(learner_classes()[learner])}
    return [part for name, value in FEWER.items() if name in known for part in ("-p", f"{name}={value}")]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Numbers and names, some missing, labelled by classes, sets or not at all; more rows than set the bins."""
    path = tmp_path / "mixed.csv"
    lines = [
        f"{'?' if i % 9 == 4 else (i * 37) % 101},{'?' if i % 7 == 3 else 'rgb'[i % 3]},{(i * 11) % 13},"
        + LABELS[((i * 37) % 101 > 50) if i % 4 else 2 + i % 8 // 4]
        for i in range(130)
    ]
    path.write_text("\n".join(["size,colour,noise,class", *lines]) + "\n")
    return path


def serve(server: str, name: str, file: Path, *flags: str) -> None:
    created = quercus("models", "create", name, str(file), *flags, server=server)
    assert created.returncode == 0, created.stderr
    pushed = quercus("push", name, str(file), "--labels", server=server)
    assert pushed.returncode == 0, pushed.stderr
    with Client(server) as client:
        client.wait_grown(name)


@pytest.mark.parametrize("learner", ["c45", "forest"])
def test_every_form_is_that_of_the_served_tree(
    server: str, name: str, mixed: Path, tmp_path: Path, learner: str
) -> None:
    flags = ["--learner", learner, *own_flags(learner), "--cuts", "5"]
    serve(server, name, mixed, *flags)
    for form in ([], ["--rules"], ["--member", "0", "--depth", "1"]):
        of_server, offline = (
            quercus("tree", name, *form, server=server),
            quercus("induce", str(mixed), *flags, *form),
        )
        assert offline.stdout == of_server.stdout
        assert offline.stdout.count("\n") > 1
    pictures = [f"--{form}" for form in ("dot", "svg")]
    served, own = ([str(tmp_path / f"{where}.{p[2:]}") for p in pictures] for where in ("served", "own"))
    quercus(
        "tree", name, *(part for pair in zip(pictures, served, strict=True) for part in pair), server=server
    )
    quercus(
        "induce", str(mixed), *flags, *(part for pair in zip(pictures, own, strict=True) for part in pair)
    )
    assert [Path(each).read_text() for each in served] == [Path(each).read_text() for each in own]
    wrong = quercus("induce", str(mixed), *flags, "--member", "9")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "member: is 9, must lie in [0, " in wrong.stderr


MISTAKES = [
    ["--learner", "random"],
    ["--learner", "c45", "-p", "lam=1"],
    ["--learner", "c45", "-p", "confidence=2"],
    ["--learner", "forest", "-p", "base=forest"],
    ["--learner", "forest", "-p", "trees=0"],
    ["--learner", "averaging", "--pruning", "likelihood"],
    ["--learner", "c45", "--memory-rows", "9"],
    ["--learner", "active-forest", "--strategy", "published"],
    ["--learner", "abc45", "--strategy", "margin"],
    ["--pruning", "likelihood", "--pruning-level", "2"],
    ["--pruning-level", ".1"],
    ["-p", "trees=3"],
    ["--cuts", "0"],
    ["--alpha", "2"],
]


@pytest.mark.parametrize("flags", MISTAKES, ids=" ".join)
def test_mistakes_are_refused_as_models_create_refuses_them(
    server: str, name: str, mixed: Path, flags: list[str]
) -> None:
    of_server = quercus("models", "create", name, str(mixed), *flags, server=server)
    offline = quercus("induce", str(mixed), *flags)
    assert of_server.returncode == offline.returncode > 0
    one, other = (done.stderr.replace(" models create", " induce") for done in (of_server, offline))
    assert one.splitlines()[-3:] == other.splitlines()[-3:]
    assert not offline.stdout


def test_the_default_of_pruning_is_its_declared_level(server: str, name: str, mixed: Path) -> None:
    serve(server, name, mixed, "--learner", "e2m", "--pruning", "likelihood")
    shown = json.loads(quercus("models", "show", name, "--json", server=server).stdout)
    assert shown["specification"]["pruning"] == {"kind": "likelihood", "level": 0.05}
    offline = quercus("induce", str(mixed), "--learner", "e2m", "--pruning", "likelihood")
    assert offline.stdout == quercus("tree", name, server=server).stdout


def test_the_accuracy_is_that_of_the_predictions(mixed: Path, tmp_path: Path) -> None:
    """The counts are of rows with one true class: of all, and of those about which nothing was said."""
    truth = tmp_path / "truth.csv"
    classes = [("low", "high")[(i * 37) % 101 > 50] for i in range(130)]
    truth.write_text("\n".join(["class", *classes]) + "\n")
    asked = [
        str(mixed),
        "--truth",
        str(truth),
        "--budget",
        "4",
        "--learner",
        "active-forest",
        "-p",
        "trees=9",
    ]
    counts = json.loads(quercus("induce", *asked, "--json").stdout)
    assert len(counts["queries"]) == 4
    accuracy = counts["accuracy"]
    unlabelled = mixed.read_text().count(",?\n")
    answered = sum(mixed.read_text().splitlines()[1 + q["row"]].endswith(",?") for q in counts["queries"])
    assert accuracy["rows"] == 130
    assert accuracy["unlabelled_rows"] == unlabelled - answered
    assert 110 < accuracy["right"] <= 130
    said = quercus("induce", *asked).stderr
    assert f"accuracy {accuracy['right'] / 130:.4f} ({accuracy['right']} of 130); " in said
    assert "accuracy" not in json.loads(quercus("induce", str(mixed), "--json").stdout)


def test_names_beyond_the_bound_are_learned_from_as_one_value(tmp_path: Path) -> None:
    """As by a served model: the tree has a branch for them."""
    file = tmp_path / "towns.csv"
    numbers = [*range(1_000), *range(1_000), *(1_000 + i % 700 for i in range(1_400))]
    rows = (f"t{i},{'kept' if i < 1_000 else 'beyond'}\n" for i in numbers)
    file.write_text("town,class\n" + "".join(rows))
    for learner in ("abc45", "c45"):
        done = quercus("induce", str(file), "--learner", learner)
        assert done.returncode == 0, done.stderr
        assert "town, line 2002: has more than 1,000 different names: the first 1,000 are kept" in done.stderr
        assert "those of 1,400 rows count as (other names)" in done.stderr
        (line,) = (each for each in done.stdout.splitlines() if "(other names)" in each)
        assert "(other names): beyond  n=1400" in line
