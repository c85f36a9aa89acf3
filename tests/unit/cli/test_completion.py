"""The tab key offers what the installed learners declare: learners, their parameters and strategies, described."""

import pytest
import typer.testing

from quercus.cli.main import app
from quercus.specification.learners import Declaration, declarations
from quercus.specification.plugins import STRATEGIES, plugin_names

CREATE = "quercus models create m f.csv"


def offered(line: str, width: int = 400) -> dict[str, str]:
    """Return the completions that fish would offer for a line that ends at the cursor, each with its description."""
    environment = {"_QUERCUS_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    result = typer.testing.CliRunner().invoke(
        app,
        [],
        prog_name="quercus",
        env=environment | {"_TYPER_COMPLETE_ARGS": line, "COLUMNS": str(width)},
    )
    return dict(each.split("\t") for each in result.stdout.splitlines() if each)


@pytest.mark.parametrize("name", ["c45", "active-forest"])
def test_strategies_are_those_of_the_learner_and_say_what_they_select(name: str) -> None:
    learner = next(each for each in declarations() if each.name == name)
    assert offered(f"{CREATE} --learner {name} --strategy ") == {
        each.name: each.summary for each in learner.strategies
    }
    assert set(offered(f"{CREATE} --strategy ")) == set(plugin_names(STRATEGIES))
    assert set(offered("quercus models update m --strategy ")) == set(plugin_names(STRATEGIES))
    assert offered(f"{CREATE} --learner {name[:2]}")[name] == learner.summary


@pytest.mark.parametrize("learner", declarations(), ids=lambda each: each.name)
def test_parameters_are_those_of_the_learner_with_their_descriptions(learner: Declaration) -> None:
    words = offered(f"quercus induce f.csv --learner {learner.name} -p ")
    assert {word.rstrip("="): says.partition(";")[0] for word, says in words.items() if word != "base="} == {
        each.name: each.description.partition(";")[0] for each in learner.parameters
    }
    assert ("base=" in words) == bool(learner.bases)


def test_words_that_parameters_take() -> None:
    line = f"{CREATE} --learner"
    assert list(offered(f"{line} forest -p vote=")) == ["vote=label", "vote=mass"]
    assert list(offered(f"{line} e2m -p informed_only=")) == ["informed_only=true", "informed_only=false"]
    assert offered(f"{line} c45 -p confidence=") == {"confidence=none": "no pruning"}
    assert list(offered(f"{line} forest -p base=c")) == ["base=c45"]
    assert list(offered(f"{line} forest -p base=c45 -p base.m")) == ["base.max_cuts=", "base.min_branch="]
    assert list(offered(f"{CREATE} --strategy committee --strategy-parameter ")) == ["cover=", "explore="]
    assert list(offered(f"{CREATE} --strategy shared --strategy-parameter regret=")) == ["regret=none"]
    assert offered(f"{CREATE} --strategy-parameter ") == {}
    assert offered(f"{line} nobodys -p ") == offered(f"{CREATE} -p ") == {}


@pytest.mark.parametrize("width", [40, 80])
def test_a_description_is_one_line_however_narrow_the_terminal_is(width: int) -> None:
    """Shells take a further line for one more word; the helper of this test fails at it."""
    assert list(offered(f"{CREATE} --learner c45 -p ", width)) == [
        "max_cuts=",
        "min_branch=",
        "confidence=",
    ]
    assert len(offered(f"{CREATE} --learner ", width)) == len(declarations())


def test_the_help_says_how_to_list_strategies() -> None:
    result = typer.testing.CliRunner().invoke(app, ["models", "update", "--help"], env={"COLUMNS": "200"})
    line = next(each for each in result.stdout.splitlines() if "--strategy" in each)
    assert "quercus learners" in line
