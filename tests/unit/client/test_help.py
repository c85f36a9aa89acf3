"""Help teaches: every command has examples, and they can be copied as they stand."""

import pytest
import typer.testing

from quercus.cli import main
from quercus.cli.main import app
from quercus.specification.learners import DEFAULT

STORE = ("backup", "restore", "migrate", "check", "export", "import", "archive", "rebuild")
LABELLING = ("label", "answers", "policy", "history")
COMMANDS = (
    "serve",
    "console",
    "push",
    *LABELLING,
    "classify",
    "tree",
    "watch",
    "status",
    "learners",
    "doctor",
    "demo",
    "induce",
    *STORE,
)
VERBS = ("list", "show", "create", "update", "delete")
TOKEN_VERBS = ("create", "whoami", "list", "revoke", "audit")
PROTOCOLS = ("labels", "learners", "queries", "restaurant", "plot", "table", "list")
COLUMNS = 80
SHORT = "labellers show"
"""Its examples leave the verb out: it is what `labellers MODEL` means."""


def shown(*arguments: str) -> str:
    result = typer.testing.CliRunner().invoke(
        app, [*arguments, "--help"], env={"COLUMNS": str(COLUMNS)}, prog_name="quercus"
    )
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        *(f"models {verb}" for verb in VERBS),
        *(f"tokens {verb}" for verb in TOKEN_VERBS),
        "labellers evict",
        "bridge mqtt",
        "bridge redis",
        "bridge webhook",
        "bridge label-studio",
        "labellers show",
        *(f"experiment {protocol}" for protocol in PROTOCOLS),
    ],
)
def test_each_example_is_on_an_indented_line_of_its_own(command: str) -> None:
    page = shown(*command.split())
    assert max(map(len, page.splitlines())) <= COLUMNS
    assert "``" not in page
    examples = page.partition(" Try:")[2].partition("╭")[0].splitlines()
    examples = [line.rstrip() for line in examples if line.strip()]
    assert examples
    for line in examples:
        assert line.startswith(f"     quercus {'labellers' if command == SHORT else command}")


def test_groups_name_their_commands() -> None:
    assert all(f"│ {command} " in shown() for command in (*COMMANDS, "models", "tokens", "labellers"))
    assert all(f"│ {verb} " in shown("models") for verb in VERBS)
    assert all(f"│ {verb} " in shown("tokens") for verb in TOKEN_VERBS)
    assert all(f"│ {protocol} " in shown("experiment") for protocol in PROTOCOLS)


def test_brackets_are_shown_as_they_are() -> None:
    assert "a table [server]" in " ".join(shown("serve").replace("│", " ").split())


def test_the_list_of_commands_says_what_each_command_says() -> None:
    for name, (_, _, line) in main.COMMANDS.items():
        assert main.load_command(name).help.split("\n\n")[0] == line


def test_the_first_page_says_what_to_type_and_what_the_default_is() -> None:
    page = shown()
    assert "By default a model is a forest that asks for the labels" in " ".join(page.split())
    first = [line.strip() for line in page.partition("The first commands")[2].partition("╭")[0].splitlines()]
    typed = [line for line in first if line.startswith("quercus ")]
    assert [line.split()[1] for line in typed] == ["inspect", "models", "push", "label"]
    create = " ".join(shown("models", "create").split())
    assert f"By default the model is an {DEFAULT}: a forest that asks for labels" in create
