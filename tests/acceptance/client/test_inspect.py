"""``quercus inspect``, and what ``models create`` and ``induce`` say of the same file."""

import json
from pathlib import Path

import pytest
from support.command_line import quercus

ROWS = "".join(f"T{i},{i % 5}.{i:02d},2026-01-{i + 1:02d},{'ab'[i % 2]}\n" for i in range(24))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("ticket,x,taken,class\n" + ROWS)
    return path


def test_a_file_is_looked_at_without_a_server(table: Path) -> None:
    done = quercus("inspect", str(table), server="127.0.0.1:1")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    roles = {line.split()[0]: line[8:].strip().split("  ")[0] for line in lines[1:5]}
    assert roles == {"ticket": "left out", "x": "numbers", "taken": "refused", "class": "class"}
    refused, left = lines[-2:]
    assert refused.startswith("refused: taken, line 2: '2026-01-01' is a date or a time")
    assert left.startswith("left out: ticket: 24 different values in 24 rows")
    found = quercus("inspect", str(table), "--numeric", "taken", "--attribute", "ticket", "--json")
    assert found.returncode == 0
    looked = json.loads(found.stdout)
    assert [(each["name"], each["role"]) for each in looked["columns"]] == [
        ("ticket", "names"), ("x", "number"), ("taken", "time"), ("class", "class"),
    ]  # fmt: skip
    assert (looked["rows"], looked["labelled"], looked["classes"], looked["remarks"]) == (
        24,
        24,
        ["a", "b"],
        [],
    )
    spelled = table.with_name("spelled.csv")
    spelled.write_text("on,class\n" + "True,a\nTRUE,b\nfalse,a\n" * 8)
    (line,) = (x for x in quercus("inspect", str(spelled)).stdout.splitlines() if x.split()[:1] == ["on"])
    assert line.split()[1:4] == ["names", "24", "2"]
    nameless = quercus("inspect", str(table), "--class", "kind")
    assert nameless.stderr.startswith(f"error: {table}: --class: no column 'kind'")


def test_commands_that_read_a_file_say_the_same(server: str, name: str, table: Path) -> None:
    inspected = quercus("inspect", str(table), "--ignore", "taken")
    (left,) = [line for line in inspected.stdout.splitlines() if line.startswith("left out")]
    assert inspected.returncode == 0
    refused = quercus("models", "create", name, str(table), server=server)
    assert (refused.returncode, "--numeric taken" in refused.stderr) == (1, True)
    made = quercus("models", "create", name, str(table), "--ignore", "taken", server=server)
    assert left in made.stdout.splitlines()
    again = quercus("models", "create", f"{name}-j", str(table), "--ignore", "taken", "--json", server=server)
    (remark,) = json.loads(again.stdout)["remarks"]
    assert (remark["column"], remark["outcome"]) == ("ticket", "left out")
    offline = quercus("induce", str(table), "--ignore", "taken")
    assert left in offline.stderr.splitlines()
