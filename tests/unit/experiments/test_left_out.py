"""If a third-party package is absent, its curves are left out, with a message that says how to install it."""

import sys

import pytest
import typer
import typer.testing

from quercus.cli.common import CommandFailure
from quercus.cli.experiment import levels_of
from quercus.cli.main import app


def test_methods_whose_package_is_absent_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skactiveml", None)
    given = ["experiment", "queries", "--sets", "iris", "--output", str(tmp_path)]
    few = ["--folds", "2", "--repeats", "1", "--max-answers", "2", "--step", "2"]
    run = typer.testing.CliRunner().invoke
    done = run(app, [*given, *few, "--methods", "random,activeml-margin"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "skipped: activeml-margin, which need skactiveml" in said
    assert "pip install 'quercus[experiment]'" in said
    assert "activeml" not in (tmp_path / "results.csv").read_text()
    nothing = run(app, [*given, "--methods", "activeml-margin,activeml-committee"])
    assert isinstance(nothing.exception, CommandFailure)
    assert "no method is left" in str(nothing.exception)


def test_an_unknown_method_is_a_wrong_usage():
    done = typer.testing.CliRunner().invoke(app, ["experiment", "queries", "--methods", "psychic"])
    assert done.exit_code == 2
    assert "there is no 'psychic'" in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize("text", ["5:inf:5", "0:1:1e-9", "nan:1:1", "2,1e3"])
def test_levels_without_end_are_a_wrong_usage(text):
    with pytest.raises(typer.BadParameter, match=r"must be FROM:TO:STEP or numbers .* at most 1,000"):
        levels_of("--sizes", text, 0, 100)


@pytest.mark.parametrize("method", ["activeml-margin", "activeml-committee"])
def test_scikit_activeml_asks_without_a_word(tmp_path, method):
    pytest.importorskip("skactiveml")
    given = ["experiment", "queries", "--sets", "iris", "--output", str(tmp_path), "--methods", method]
    few = ["--folds", "2", "--repeats", "1", "--max-answers", "12", "--step", "12"]
    done = typer.testing.CliRunner().invoke(app, [*given, *few])
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "results.csv").read_text().splitlines()[1:]
    accuracy = {line.split(",")[3]: float(line.split(",")[8]) for line in lines}
    assert accuracy["12.0"] > accuracy["0.0"]  # and no warning was raised: they are errors here
