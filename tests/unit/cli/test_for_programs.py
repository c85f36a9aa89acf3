"""The interface for programs: `--json` wherever something is printed, errors as one line of JSON, exit codes."""

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.checkout import ROOT

from quercus.cli import failures, main
from quercus.cli.demo import command as demo
from quercus.cli.main import COMMANDS, load_command

WITHOUT_JSON = {
    "serve",  # prints where it listens, and logs: --log-format json
    "console",  # prints where it listens
    "bridge label-studio",  # prints where it listens
    "demo",  # for people; its results are files
    *(
        f"experiment {protocol}" for protocol in ("labels", "learners", "queries", "restaurant", "plot")
    ),  # files
}
KEYS = ["kind", "message", "exit_code", "hints", "fields", "retry_s"]


def every_command() -> Iterator[tuple[str, Any]]:
    for name in COMMANDS:
        found = load_command(name)
        verbs = getattr(found, "commands", None)
        yield from (
            [(name, found)] if verbs is None else [(f"{name} {verb}", each) for verb, each in verbs.items()]
        )


def test_every_command_prints_json_where_it_prints() -> None:
    flags = {name: {flag for each in found.params for flag in each.opts} for name, found in every_command()}
    assert len(flags) > 25
    assert {name for name, known in flags.items() if "--json" not in known} == WITHOUT_JSON


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["quercus", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


MISTAKES = [
    (["models", "show", "m", "--server", "127.0.0.1:1", "--json"], 1, "Unavailable", "no server answers"),
    (["models", "show", "--json"], 2, "Usage", "Missing argument"),
    (["frobnicate", "--json"], 2, "Usage", "No such command"),
    (["check", "--json", "--store", "nowhere.db"], 1, "CommandFailure", "does not exist"),
    (["induce", "ragged.csv", "--json"], 1, "FileError", "line 3"),
    (
        ["classify", "m", "ragged.csv", "--format", "jsonl", "--server", "127.0.0.1:1"],
        1,
        "Unavailable",
        "127.0.0.1:1",
    ),
]


@pytest.mark.parametrize(("arguments", "code", "kind", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_an_error_is_one_line_of_json(
    arguments: list[str],
    code: int,
    kind: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "ragged.csv").write_text("a,class\n1,x\n2\n")
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    error = json.loads(line)["error"]
    assert list(error) == KEYS
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert words in error["message"]


def test_the_demo_removes_nothing_from_a_folder_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quercus.db").write_text("the store of quercus serve")
    monkeypatch.chdir(tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(demo, "on_signals", lambda *_: pytest.fail("the demo has begun"))
        assert run(monkeypatch, "demo", "-o", ".") == 1
    assert "is neither empty nor from an earlier demo" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["quercus.db"]
    own = tmp_path / "new"
    demo._prepare_folder(own)
    (own / "quercus.db").touch()
    (own / "notes.txt").touch()
    demo._prepare_folder(own)
    assert sorted(each.name for each in own.iterdir()) == [demo.MARK, "notes.txt"]


def test_an_error_without_json_is_for_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "models", "list", "--server", "127.0.0.1:1") == 1
    assert capsys.readouterr().err.startswith("error: no server answers at 127.0.0.1:1\n  start one with: ")


def test_text_that_is_not_utf_8_is_an_error_in_words_and_can_be_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell hands over bytes of another encoding as half surrogates."""
    assert run(monkeypatch, "models", "show", "caf\udce9", "--server", "127.0.0.1:1") == 1
    assert capsys.readouterr().err == "error: name: is 'models/caf\\udce9', must be text in Unicode\n"
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    main._accept_all_characters(stream)
    stream.write("wrote caf\udce9.db")
    stream.flush()
    assert stream.buffer.getvalue() == rb"wrote caf\udce9.db"  # type: ignore[attr-defined]


def test_errors_contain_fields_and_hints() -> None:
    from quercus.client.errors import NotFound, invalid

    errors = (invalid("alpha", "is 2, must lie in [0, 1]"), NotFound("model tea does not exist"))
    assert [failures.hints_of(error) for error in errors] == [[], ["list them with: quercus models list"]]


def test_a_field_that_is_wrong_stands_in_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    from quercus.client.errors import invalid

    failures.print_error_json(invalid("alpha", "is 2, must lie in [0, 1]"))
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["fields"] == [{"field": "alpha", "reason": "is 2, must lie in [0, 1]"}]
    assert error["kind"] == "InvalidArgument"


def test_the_exit_codes_of_the_program_are_those_of_the_table() -> None:
    source = "".join(file.read_text() for file in sorted((ROOT / "cli").glob("*.py")))
    used = {int(code) for code in re.findall(r"(?:sys\.exit|typer\.Exit)\((\d+)\)", source)}
    assert used <= set(failures.EXIT_CODES)
    assert set(failures.EXIT_CODES) == {0, 1, 2, 130}
