"""Columns of files that labellers see beside a row; Parquet and Arrow files."""

import datetime
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from quercus.files import FileError, FileTable, open_table
from quercus.files.displays import display_columns, display_of
from quercus.specification.display import DisplayItem, LinkItem, MediaItem, SeriesItem, TextItem

GIF = b"GIF89a1234"


def displays(table: FileTable, *given: str) -> list[list[DisplayItem] | None]:
    columns = display_columns(table, given, "--beside")
    return [display_of(table, record, columns) for record in table]


def test_every_kind_of_item(tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(GIF)
    path = tmp_path / "rows.csv"
    path.write_text(
        "note,page,curve,photo,sound\n"
        "<b>,https://a.example/1,1 2;? 4,a.gif,https://a.example/x.ogg\n"
        'two,?,"[1, 2]","data:image/gif;base64,R0lGODlhMTIzNA==",\n'
        "?,?,?,?,?\n"
    )
    first, second, third = displays(
        open_table(path), "text:note", "link:page", "series:curve", "image:photo", "audio:sound"
    )
    assert first is not None
    assert first[:2] == [TextItem("note", "<b>"), LinkItem("page", "https://a.example/1")]
    assert isinstance(first[2], SeriesItem)
    assert str(first[2].values) == "(1.0, 2.0, nan, 4.0)"
    assert first[3:] == [
        MediaItem("image", "photo", data=GIF),
        MediaItem("audio", "sound", url="https://a.example/x.ogg"),
    ]
    photo = MediaItem("image", "photo", data=GIF)
    assert second == [TextItem("note", "two"), SeriesItem("curve", (1.0, 2.0)), photo]
    assert third is None


@pytest.mark.parametrize(
    ("kind", "cell", "reason"),
    [
        ("image", "../secret.gif", "below the folder"),
        ("image", "/etc/passwd", "below the folder"),
        ("image", "none.gif", "cannot be read: No such file"),
        ("image", "rows.csv", "must be a file of type PNG"),
        ("image", "big.gif", "larger than 65,536 bytes"),
        ("image", "data:image/gif;base64,%%", "not base64"),
        ("series", "1 two", "must be numbers"),
        ("link", "javascript:alert(1)", "https://"),
    ],
)
def test_a_cell_that_is_no_item(tmp_path: Path, kind: str, cell: str, reason: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret.gif").write_bytes(GIF)
    (folder / "big.gif").write_bytes(GIF + bytes(70_000))
    (folder / "rows.csv").write_text(f'x,it\n1,"{cell}"\n')
    with pytest.raises(FileError, match=reason) as caught:
        displays(open_table(folder / "rows.csv"), f"{kind}:it")
    assert "line 2" in str(caught.value)
    with pytest.raises(FileError, match="must be KIND:COLUMN"):
        displays(open_table(folder / "rows.csv"), "video:it")
    with pytest.raises(FileError, match="no column 'that'"):
        displays(open_table(folder / "rows.csv"), f"{kind}:that")


def write_feather(table: pa.Table, path: Path) -> None:
    feather.write_feather(table, path)  # packed with LZ4


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("parquet", parquet.write_table),
        ("feather", write_feather),
        ("arrow", write_feather),
        ("arrows", write_stream),
    ],
)
def test_parquet_and_arrow(tmp_path: Path, ending: str, write: Callable[[pa.Table, Path], None]) -> None:
    path = tmp_path / f"rows.{ending}"
    form = "Parquet" if ending == "parquet" else "Arrow"
    columns = {
        "size": [1.5, None, float("nan")],
        "count": [1, 2, None],
        "hue": pa.array(["red", None, "?"]).dictionary_encode(),
        "wet": [True, False, None],
        "day": [datetime.date(2026, 11, 23), None, None],
        "curve": [[0.5, None], [], None],
        "photo": [GIF, None, None],
    }
    write(pa.table(columns), path)
    table = open_table(path)
    assert table.names == tuple(columns)
    rows = [list(record.cells) for record in table]
    assert rows[0][:6] == ["1.5", "1", "red", "true", "2026-11-23", "0.5 nan"]
    assert rows[1:] == [[None, "2", None, "false", None, None, None], [None] * 7]
    first, *others = displays(table, "series:curve", "image:photo")
    assert first is not None
    assert first[1] == MediaItem("image", "photo", data=GIF)
    assert others == [None, None]
    write(pa.table({"photo": ["a\0b.gif"]}), tmp_path / f"null.{ending}")
    with pytest.raises(FileError, match="no name of a file has a null character"):
        displays(open_table(tmp_path / f"null.{ending}"), "image:photo")
    write(pa.table({"day": pa.array([10**9], pa.date32())}), tmp_path / f"far.{ending}")
    with pytest.raises(FileError, match=r"row 1, column 1 \(day\): holds 1000000000 of the type date32"):
        list(open_table(tmp_path / f"far.{ending}"))
    (tmp_path / f"bad.{ending}").write_bytes(path.read_bytes()[:6] + b" and no more")
    with pytest.raises(FileError, match=f"cannot be read as {form}"):
        open_table(tmp_path / f"bad.{ending}")


@pytest.mark.parametrize(
    ("kind", "held", "shown"),
    [
        (pa.duration("s"), 2**62, "holds 4611686018427387904 of the type duration[s], which cannot be read"),
        (pa.date32(), 2**31 - 1, "holds 2147483647 of the type date32[day], which cannot be read"),
        (
            pa.timestamp("us", "Nowhere/Land"),
            5,
            "holds 5 of the type timestamp[us, tz=Nowhere/Land], which cannot",
        ),
    ],
)
def test_a_moment_that_no_calendar_has_is_named_with_its_row(
    tmp_path: Path, kind: pa.DataType, held: int, shown: str
) -> None:
    path = tmp_path / "far.feather"
    values = pa.array([None] * 1_200 + [held], kind)
    feather.write_feather(pa.table({"x": [1.0] * 1_201, "t": values}), path)
    with pytest.raises(FileError) as refused:
        list(open_table(path))
    assert f"far.feather: row 1201, column 2 (t): {shown}" in str(refused.value)


def test_an_arrow_file_that_points_beyond_its_end_is_refused(tmp_path: Path) -> None:
    """Pyarrow itself would read what is there, or end the process."""
    path = tmp_path / "t.arrow"
    with pa.ipc.new_file(path, pa.schema({"name": pa.string()})) as writer:
        writer.write_batch(pa.record_batch({"name": ["red", "blue"]}))
    raw = path.read_bytes()
    ends = np.array([0, 3, 7], np.int32).tobytes()
    assert raw.count(ends) == 1
    path.write_bytes(raw.replace(ends, np.array([0, 3, 2**30], np.int32).tobytes()))
    with pytest.raises(FileError, match="cannot be read as Arrow"):
        list(open_table(path))
