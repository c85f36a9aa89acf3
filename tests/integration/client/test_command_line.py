"""Commands of the command line that need a server, run in this process."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS, Serving
from pyarrow import feather, parquet
from support.mounts import fill, small_disk

from quercus.cli import label, main, watch
from quercus.client import Client, Model

CASES = Path(__file__).parents[2] / "cases"


def run(monkeypatch: pytest.MonkeyPatch, serving: Serving, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["quercus", *arguments])
    monkeypatch.setenv("QUERCUS_SERVER", serving.address)
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


@pytest.fixture
def parts(client: Client, model: Model, tmp_path: Path) -> Path:
    """Two rows with ids that are paths, for a model that has grown."""
    client.push(model.name, [["a", 0.5]], ["o"])
    client.wait_grown(model.name)
    rows = tmp_path / "parts.csv"
    rows.write_bytes((CASES / "classify_ids" / "in.csv").read_bytes())
    return rows


def test_classify_writes_what_the_name_of_the_file_says(
    serving: Serving, model: Model, parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id stands first in each format; the numbers of rows are those that push gives."""
    asked = ("classify", model.name, str(parts), "--id-column", "part", "-o")
    written = {}
    for ending in ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "arrow", "feather"):
        file = written[ending] = parts.parent / f"found.{ending}"
        assert run(monkeypatch, serving, *asked, str(file)) == 0
    plain = written["csv"].read_text()
    assert plain.startswith("id,row,class,theta:o,theta:s,")
    assert [line.split(",")[:2] for line in plain.splitlines()[1:]] == [
        ["images/2026/01/a.jpg", "0"],
        ["s3://b/é.png", "1"],
    ]
    assert gzip.decompress(written["csv.gz"].read_bytes()).decode() == plain
    lines = written["jsonl"].read_text()
    assert gzip.decompress(written["jsonl.gz"].read_bytes()).decode() == lines
    assert [list(json.loads(line).items())[:2] for line in lines.splitlines()] == [
        [("id", "images/2026/01/a.jpg"), ("row", 0)],
        [("id", "s3://b/é.png"), ("row", 1)],
    ]
    table = parquet.read_table(written["parquet"])
    assert feather.read_table(written["arrow"]) == feather.read_table(written["feather"]) == table
    assert table.column_names == plain.splitlines()[0].split(",")
    kinds = {str(each.type) for each in table.schema if ":" in each.name}
    assert (str(table.schema.field("row").type), kinds) == ("int64", {"double"})
    assert table["id"].to_pylist() == ["images/2026/01/a.jpg", "s3://b/é.png"]
    assert table["theta:o"].to_pylist() == [json.loads(line)["theta"]["o"] for line in lines.splitlines()]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("-o", "found.xlsx"),
            "found.xlsx: the name must end in .csv, .jsonl (each also with .gz), .parquet, .arrow or .feather",
        ),
        (("-o", "found.csv.bz2"), "must end in .csv"),
        (("-o", "found.parquet.gz"), "Parquet is already compressed"),
        (("-o", "found.feather.gz"), "Arrow is read in place: name the file without .gz"),
        (("-o", "found.parquet", "--format", "csv"), "--format csv contradicts the name found.parquet"),
        (("-o", "found.csv", "--json"), "--format jsonl contradicts the name found.csv"),
        (("--format", "parquet"), "--format parquet needs a file: -o FILE"),
        (("--json", "--format", "csv"), "--json contradicts --format csv"),
    ],
)
def test_classify_refuses_a_file_it_does_not_write(
    serving: Serving,
    model: Model,
    parts: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(parts.parent)
    assert run(monkeypatch, serving, "classify", model.name, str(parts), *flags) == 2
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert list(parts.parent.iterdir()) == [parts]


def test_other_commands_refuse_a_name_of_another_format(
    serving: Serving, model: Model, parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(parts.parent)
    for arguments in (
        ("answers", model.name, "-o", "found.parquet", "--format", "csv"),
        ("tree", model.name, "--svg", "tree.png"),
        ("tree", model.name, "--dot", "tree.svg"),
        ("induce", str(parts), "--class", "X", "--svg", "tree.pdf"),
    ):
        assert run(monkeypatch, serving, *arguments) == 2, arguments
    assert list(parts.parent.iterdir()) == [parts]


def test_classify_refuses_a_row_without_its_id(
    serving: Serving,
    model: Model,
    parts: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts.write_text("X,part,y\na,one,0.5\nb,,2.5\n")
    found = parts.parent / "found.csv"
    for command, flags in (("classify", ("-o", str(found))), ("push", ())):
        assert run(monkeypatch, serving, command, model.name, str(parts), "--id-column", "part", *flags) == 1
        assert "line 3, column 2 (part): the id is missing" in capsys.readouterr().err
    assert list(parts.parent.iterdir()) == [parts]


def test_classify_without_pyarrow_says_what_to_install(
    serving: Serving,
    model: Model,
    parts: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = parts.parent / "found.parquet"
    assert run(monkeypatch, serving, "classify", model.name, str(parts), "-o", str(found)) == 1
    assert "pip install pyarrow" in capsys.readouterr().err
    assert list(parts.parent.iterdir()) == [parts]


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            ("classify", "MODEL", "ROWS", "-o", f"found.{each}")
            for each in ("csv", "csv.gz", "jsonl", "parquet")
        ),
        *(("answers", "MODEL", "-o", f"found.{each}") for each in ("csv", "jsonl.gz", "parquet")),
        ("tree", "MODEL", "--svg", "found.svg"),
        ("tree", "MODEL", "--dot", "found.dot"),
    ],
    ids=lambda arguments: f"{arguments[0]}-{arguments[-1]}",
)
def test_a_full_disk_has_a_whole_file_or_none(
    serving: Serving,
    model: Model,
    parts: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    given = [{"MODEL": model.name, "ROWS": str(parts)}.get(each, each) for each in arguments]
    with small_disk(parts.parent / "disk", megabytes=1) as disk:
        filler = fill(disk)
        monkeypatch.chdir(disk)
        assert run(monkeypatch, serving, *given) == 1
        assert f"cannot write {given[-1]}: No space left on device" in capsys.readouterr().err
        assert list(disk.iterdir()) == [filler]
        filler.unlink()
        assert run(monkeypatch, serving, *given) == 0
        assert [each.name for each in disk.iterdir()] == [given[-1]]
        monkeypatch.chdir(parts.parent)  # so that the disk can be unmounted


def test_classify_never_loses_a_file(
    serving: Serving,
    client: Client,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the one it reads nor the one it replaces, and what it writes appears when it is whole."""
    client.push(model.name, [["a", 0.5]], ["o"])
    client.wait_grown(model.name)
    rows = tmp_path / "rows.csv"
    rows.write_text("X,y\na,0.5\nb,2.5\n")
    (tmp_path / "link.csv").symlink_to(rows)
    for own in ("rows.csv", "link.csv"):
        assert (
            run(monkeypatch, serving, "classify", model.name, str(rows), "-o", str(tmp_path / own), "--force")
            == 2
        )
        assert "which this command reads: name another" in " ".join(
            capsys.readouterr().err.replace("│", " ").split()
        )
    assert rows.read_text() == "X,y\na,0.5\nb,2.5\n"
    found = tmp_path / "found.csv"
    arguments = ("classify", model.name, str(rows), "-o", str(found))
    assert run(monkeypatch, serving, *arguments) == 0
    written = found.read_text()
    assert len(written.splitlines()) == 3
    assert run(monkeypatch, serving, *arguments) == 2
    found.chmod(0o600)  # it stays private
    rows.write_text("X,y\na,0.5\nb\n")
    assert run(monkeypatch, serving, *arguments, "--force") == 1
    assert found.read_text() == written
    rows.write_text("X,y\na,0.5\n")
    assert run(monkeypatch, serving, *arguments, "--force") == 0
    assert len(found.read_text().splitlines()) == 2
    assert found.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["found.csv", "link.csv", "rows.csv"]


def interrupted(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_has_the_exit_code_of_the_table(
    serving: Serving, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "truth.csv").write_text("class\no\n")
    monkeypatch.setattr(label.LabellingSession, "answer_from_file", interrupted)
    assert run(monkeypatch, serving, "label", model.name, "--truth", str(tmp_path / "truth.csv")) == 130
    monkeypatch.setattr(watch, "_update_numbers", interrupted)
    assert run(monkeypatch, serving, "watch", model.name, "--timeout-s", "30") == 130


def test_a_reader_that_is_gone_before_the_first_line_is_no_trouble(serving: Serving) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [QUERCUS, "models", "list", "--json", "--server", serving.address],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
