"""A command succeeds only after the file that it wrote is on the disk, under its name."""

import ast
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import quercus.cli
from quercus.cli.main import app
from quercus.cli.output_files import write_drawn, written_whole
from quercus.server.wire.models import complete_specification
from quercus.storage import Store
from quercus.v1 import model_pb2


@pytest.fixture
def steps(monkeypatch):
    """The files that were flushed and renamed, in order."""
    done, fsync, replace = [], os.fsync, os.replace

    def noting_fsync(descriptor):
        fsync(descriptor)
        done.append(("flushed", os.readlink(f"/proc/self/fd/{descriptor}")))

    def noting_replace(source, target, **more):
        replace(source, target, **more)
        done.append(("named", os.path.realpath(target)))

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "replace", noting_replace)
    return done


@pytest.fixture
def store(tmp_path):
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url) as opened:
        given = model_pb2.Specification(
            classes=["a", "b"],
            attributes=[model_pb2.Attribute(name="x", numeric=model_pb2.NumericAttribute())],
        )
        data = complete_specification(given).SerializeToString(deterministic=True)
        opened.create_model("wine", data, budget=3)
    return url


def _assert_on_disk(steps, file: Path) -> None:
    file, folder = file.resolve(), str(file.resolve().parent)
    named = steps.index(("named", str(file)))
    assert any(step == "flushed" and place.startswith(str(file)) for step, place in steps[:named])
    assert ("flushed", folder) in steps[named:]


@pytest.mark.parametrize("name", ["wine.jsonl", "wine.jsonl.gz", "wine.csv", "wine.parquet"])
def test_an_export_is_on_the_disk(tmp_path, store, steps, name):
    target = tmp_path / "out" / name
    target.parent.mkdir()
    run = CliRunner().invoke(app, ["export", "wine", str(target), "--store", store])
    assert run.exit_code == 0, run.output
    _assert_on_disk(steps, target)


def test_a_token_is_on_the_disk(tmp_path, store, steps):
    target = tmp_path / "out" / "token"
    target.parent.mkdir()
    asked = ["tokens", "create", "ann", "--role", "labeller", "--output", str(target), "--store", store]
    run = CliRunner().invoke(app, asked)
    assert run.exit_code == 0, run.output
    assert target.stat().st_mode & 0o777 == 0o600
    assert steps.index(("flushed", str(target))) < steps.index(("flushed", str(target.parent)))


def test_a_picture_is_on_the_disk_and_a_pipe_is_written_as_it_stands(tmp_path, steps):
    write_drawn(tmp_path / "tree.svg", "<svg/>")
    _assert_on_disk(steps, tmp_path / "tree.svg")
    with written_whole(Path("/dev/null")) as part:
        assert part == Path("/dev/null")


def test_every_command_writes_its_files_there():
    """No command opens a file for writing itself: whoever adds one meets this list; a demo can be run again."""
    own = {
        "bridge.py": 1,  # lines that are added as they come: the bridge flushes each
        "main.py": 1,  # standard output that cannot be written goes nowhere
        "output_files.py": 4,
    }
    found: dict[str, int] = {}
    for file in Path(quercus.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and _writes(node):
                found[file.name] = found.get(file.name, 0) + 1
    assert found == own


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in {"write_text", "write_bytes", "touch", "savefig"}:
        return True
    if name not in {"open", "fdopen"}:
        return False
    words = [
        each.value
        for each in [*call.args, *(k.value for k in call.keywords)]
        if isinstance(each, ast.Constant)
    ]
    flags = {each.attr for each in ast.walk(call) if isinstance(each, ast.Attribute)}
    modes = {"w", "a", "x", "wb", "ab", "xb", "wt"}
    return bool(modes & {word for word in words if isinstance(word, str)} or "O_WRONLY" in flags)
