"""CSV and ARFF files: what is read, and for every malformed one the line and column of the trouble."""

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from quercus.client import Nominal, Numeric, Specification
from quercus.files import FileError, FileTable, open_table, packing, read
from quercus.files.arrow_sizes import unpacked_sizes
from quercus.files.errors import FileWarning
from quercus.files.schema import Binding, infer_schema
from quercus.files.table import MAX_LINE_BYTES

ARFF = "@relation t\n@attribute a {x, y}\n@attribute b real\n@data\n"


def table(tmp_path: Path, name: str, content: str | bytes) -> FileTable:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_table(path)


def cells(opened: FileTable) -> list[tuple[int, list[str | None]]]:
    return [(record.line, list(record.cells)) for record in opened]


def test_csv(tmp_path: Path) -> None:
    opened = table(tmp_path, "t.csv", 'a, b \n1, x\n\n?,"two\nlines"\n"say ""hi""",\n')
    assert opened.names == ("a", "b")
    assert cells(opened) == [(2, ["1", "x"]), (4, [None, "two\nlines"]), (6, ['say "hi"', None])]
    assert cells(opened) == cells(opened)  # each iteration reads the file anew


def test_csv_with_byte_order_mark_windows_line_ends_and_no_last_one(tmp_path: Path) -> None:
    opened = table(tmp_path, "t.csv", b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4")
    assert opened.names == ("a", "b")
    assert cells(opened) == [(2, ["1", "2"]), (3, ["3", "4"])]


def test_compressed_files(tmp_path: Path) -> None:
    assert cells(table(tmp_path, "t.csv.gz", gzip.compress(b"a\n1\n"))) == [(2, ["1"])]
    assert cells(table(tmp_path, "t.arff.gz", gzip.compress((ARFF + "x,1\n").encode()))) == [(5, ["x", "1"])]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.zip", "T"])
def test_the_first_bytes_tell_the_packing(tmp_path: Path, name: str) -> None:
    plain = b"a,b\n1,2\n"
    for content in (
        plain,
        gzip.compress(plain),
        bz2.compress(plain),
        lzma.compress(plain),
        zipped({"t": plain}),
    ):
        assert cells(table(tmp_path, name, content)) == [(2, ["1", "2"])]


def zipped(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def test_archives(tmp_path: Path) -> None:
    one = zipped({"f/t.arff": (ARFF + "x,1\n").encode(), "f/.hidden": b"", "__MACOSX/t": b"", "g/": b""})
    assert cells(table(tmp_path, "t.zip", one)) == [(5, ["x", "1"])]
    with pytest.raises(FileError, match=r"is a zip archive of 2 files \(a\.csv, b\.csv\); it must hold one"):
        table(tmp_path, "t.zip", zipped({"a.csv": b"a\n1\n", "b.csv": b"a\n1\n"}))
    with pytest.raises(FileError, match="is an Excel workbook: save the sheet as CSV"):
        table(tmp_path, "t.csv", zipped({"xl/workbook.xml": b"<x/>", "a": b""}))
    with pytest.raises(FileError, match="cannot be read: File is not a zip file"):
        table(tmp_path, "t.csv", zipped({"a.csv": b"a\n1\n"})[:-30])


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, lambda content: zipped({"t": content})]
)
def test_a_file_that_unpacks_without_end_is_refused_by_a_named_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(packing, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(packing, "MAX_EXPANSION", 50)
    bomb = pack(b"a\n" + (b"1" * 999 + b"\n") * 4_000)
    with pytest.raises(FileError, match="unpacks to more than 1 MiB and 50 times its size"):
        list(table(tmp_path, "t.csv", bomb))


@pytest.mark.parametrize("ending", ["arrow", "arrows", "parquet"])
@pytest.mark.parametrize("kind", ["zeros", "nulls", "names"])
def test_so_is_a_file_of_arrow_or_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, ending: str
) -> None:
    """Numbers that were compressed, cells that take no room, and a long name of which each cell has the number."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    monkeypatch.setattr(packing, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(packing, "MAX_EXPANSION", 2)
    columns = {
        "zeros": lambda: pa.repeat(0.0, 500_000),
        "nulls": lambda: pa.nulls(1_500_000),
        "names": lambda: pa.DictionaryArray.from_arrays([0] * 900, ["n" * 40_000]),
    }
    rows = pa.table({"x": columns[kind]()})
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        parquet.write_table(rows, path)
    else:
        make = ipc.new_file if ending == "arrow" else ipc.new_stream
        with make(path, rows.schema, options=ipc.IpcWriteOptions(compression="zstd")) as target:
            target.write_table(rows)
    pool, own = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(
            FileError, match="unpacks to more than 1 MiB and 2 times its size: if that is intended"
        ):
            list(open_table(path))
    finally:
        pa.set_memory_pool(own)
    if kind == "zeros" and ending != "parquet":
        assert pool.max_memory() <= 1 << 20  # refused before it is unpacked: 4 MB of numbers


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("ending", ["arrow", "arrows"])
def test_an_arrow_file_says_to_what_its_packed_buffers_unpack(
    tmp_path: Path, ending: str, compression: str | None
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc

    names = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 5_000, "int16"), ["ab" * 50, "c" * 28])
    rows = pa.record_batch({"number": pa.array([0.0] * 10_000), "name": names})
    path = tmp_path / f"t.{ending}"
    make = ipc.new_file if ending == "arrow" else ipc.new_stream
    with make(path, rows.schema, options=ipc.IpcWriteOptions(compression=compression)) as target:
        target.write_batch(rows)
        target.write_batch(rows.slice(0, 5_000))
    with pa.memory_map(str(path)) as source:
        sizes = list(unpacked_sizes(source, is_file=ending == "arrow"))
    if compression is None:
        assert sizes == []
    else:
        small = {0, 12, 128}  # offsets and letters of the names: they may be kept as they are
        assert [each for each in sizes if each not in small] == [80_000, 20_000, 40_000, 10_000]
    assert len(list(open_table(path))) == 15_000
    data = path.read_bytes()
    for begin in re.finditer(b"\xff\xff\xff\xff", data):  # of a message; its length is none
        path.write_bytes(data[: begin.end()] + bytes(4) + data[begin.end() + 4 :])
        with suppress(FileError):
            list(open_table(path))


def test_what_a_csv_file_may_not_mean_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(
        FileWarning, match=r"t\.csv: line 1: .* looks like a row of data \(5\.1, 3\.5, setosa\)"
    ):
        table(tmp_path, "t.csv", "5.1,3.5,setosa\n4.9,3.0,setosa\n")
    with pytest.warns(FileWarning, match=r"line 1: has no name for the first column, .* which is left out"):
        opened = table(tmp_path, "t.csv", ",a,b\n0,1,x\n1,2,y\n1\n")
    assert opened.names == ("a", "b")
    records = iter(opened)
    first = next(records)
    assert first.cells == ["1", "x"]
    assert str(opened.error(first, 0, "is odd")).endswith("line 2, column 2 (a): is odd")
    with pytest.raises(FileError, match="line 4, column 2: the row has 1 cell, the header has 3"):
        list(records)
    for header in ("0,1,2\n3,4,5\n", "1,2\n3,4\n", "id,2019,2020\n7,1.5,2.5\n", "a,b\n1,2\n", "1,2\n"):
        table(tmp_path, "t.csv", header)  # numbered columns, years beside a name


def test_a_value_that_is_too_long_is_named_with_its_line(tmp_path: Path) -> None:
    opened = table(tmp_path, "t.csv", f"tag,age,kind\nshort,1,x\n{'z' * 101},2,y\nother,3,{'w' * 101}\n")
    with pytest.raises(FileError, match=r"line 3, column 1 \(tag\): 'zz.* has 101 characters.*--ignore tag"):
        infer_schema(opened, class_column=None)
    with pytest.raises(FileError, match=r"line 4, column 3 \(kind\): 'ww.* has 101 characters"):
        infer_schema(opened, class_column="kind", ignore=["tag"])


@pytest.mark.parametrize(
    "content",
    [
        "{long},class\n1,a\n{long},b\n2,a\n3,b\n4,a\n5,b\n6,a\n7,b\n8,a\n9,b\n",
        "{long},{long}\n1,2\n",
        "{long},class\n1\n",
        "x,class\n1,a,{long}\n",
        "x,{long}\n1,a\n2,a\n",
        "x,class\n1,{long}|a\n2,a\n",
        "x,class\n1,a\n2,b\n3,{{{long}:1\n",
    ],
)
def test_long_names_and_cells_are_cut_in_messages(tmp_path: Path, content: str) -> None:
    """Only in flags, which are to be typed, a column has its whole name."""
    long = "z" * 5_000
    with pytest.raises(FileError) as caught:
        read(table(tmp_path, "t.csv", content.format(long=long)).path, quietly=True)
    said = re.sub(r"--[a-z]+ z+", "", caught.value.reason + caught.value.place)
    assert len(said) < 600, said


def test_a_pipe_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    """A table is read more than once: of a pipe, rows would be lost."""
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(FileError, match=r"t\.csv: is a pipe or a device, .* write it to a file first"):
        open_table(tmp_path / "t.csv")


def test_another_delimiter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n")
    assert cells(open_table(tmp_path / "t.csv", delimiter=";")) == [(2, ["1,5", "2"])]
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n")
    assert cells(open_table(tmp_path / "t.tsv", delimiter="\\t")) == [(2, ["1", "2"])]


def test_arff(tmp_path: Path) -> None:
    text = (
        "% a comment\n@RELATION 'my data'\n\n@Attribute 'the shape' {round, 'not round', \"o'k\"} % of it\n"
        "@attribute size INTEGER\n@attribute\tclass{p,q}\n@DATA\n"
        "round, 1 ,p % a comment\n'not round',-2.5e3,q\n  ?,?,?\n\"o'k\",0,'p'\n{}\n{1 5, 2 q}\n{ 0 'not round' }\n"
    )
    opened = table(tmp_path, "t.arff", text)
    assert [(c.name, c.kind, c.values) for c in opened.columns] == [
        ("the shape", "nominal", ("round", "not round", "o'k")),
        ("size", "numeric", ()),
        ("class", "nominal", ("p", "q")),
    ]
    assert cells(opened) == [
        (8, ["round", "1", "p"]),
        (9, ["not round", "-2.5e3", "q"]),
        (10, [None, None, None]),
        (11, ["o'k", "0", "p"]),
        (12, ["round", "0", "p"]),
        (13, ["round", "5", "q"]),
        (14, ["not round", "0", "p"]),
    ]


def test_arff_escapes(tmp_path: Path) -> None:
    text = "@relation t\n@attribute a {'it\\'s', 'a\\\\b'}\n@data\n'it\\'s'\n'a\\\\b'\n"
    assert cells(table(tmp_path, "t.arff", text)) == [(4, ["it's"]), (5, ["a\\b"])]


def test_arff_escapes_in_names_and_all_of_them(tmp_path: Path) -> None:
    header = "@attribute 'a \\'name\\' 100\\% %' {\"say \\\"x\\\"\", 't\\tn\\nr\\r', '\\u00e9%,{}'}\n@data\n"
    opened = table(tmp_path, "t.arff", header + "'\\u00e9%,{}' % a comment\n\"t\\tn\\nr\\r\"\n")
    assert opened.names == ("a 'name' 100% %",)
    assert opened.columns[0].values == ('say "x"', "t\tn\nr\r", "é%,{}")
    assert cells(opened) == [(3, ["é%,{}"]), (4, ["t\tn\nr\r"])]


def test_arff_escapes_of_a_character_beyond_16_bits(tmp_path: Path) -> None:
    header = "@attribute a {'\\ud83c\\udf33', 🌲}\n@data\n"
    opened = table(tmp_path, "t.arff", header + "🌳\n'\\ud83c\\udf33'\n'🌲'\n")
    assert cells(opened) == [(3, ["🌳"]), (4, ["🌳"]), (5, ["🌲"])]


def test_arff_separated_by_tabs_or_blanks_and_loosely_written(tmp_path: Path) -> None:
    text = "@ATTRIBUTE\ta\t{ x\ty ,  z }\r\n@attribute b\tReal %comment\r\n@DATA\r\nx\t1\r\n  y 2  \r\nz ,\t3%\r\n'y'4"
    opened = table(tmp_path, "t.arff", text.replace("'y'4", "'y' 4"))
    assert opened.columns[0].values == ("x", "y", "z")
    assert cells(opened) == [(4, ["x", "1"]), (5, ["y", "2"]), (6, ["z", "3"]), (7, ["y", "4"])]


def test_arff_missing_values_are_bare_question_marks(tmp_path: Path) -> None:
    text = "@attribute a {'?', x}\n@attribute b real\n@data\n?,?\n'?',1\n{0 ?}\n{0 '?', 1 ?}\n"
    found = cells(table(tmp_path, "t.arff", text))
    assert found == [(4, [None, None]), (5, ["?", "1"]), (6, [None, "0"]), (7, ["?", None])]


def test_arff_weights_of_rows(tmp_path: Path) -> None:
    rows = "x,1,{2.5}\ny 2 {0}\n{1 3}, {4} % heavy\n{1 3} {1e-3}\nx,1\n"
    opened = table(tmp_path, "t.arff", ARFF + rows)
    assert [(record.cells, record.weight) for record in opened] == [
        (["x", "1"], 2.5),
        (["y", "2"], 0.0),
        (["x", "3"], 4.0),
        (["x", "3"], 0.001),
        (["x", "1"], 1.0),
    ]


BAD_CSV: list[tuple[str | bytes, str]] = [
    ("", "is empty: expected a header line"),
    ("\n\n", "is empty: expected a header line"),
    ("a,b,a\n", r"line 1, column 3: the name 'a' is taken by column 1"),
    ("a,,b\n", r"line 1, column 2: the column has no name: name it in the header, or remove the column"),
    (b"\xff\xfea\x00,\x00", "is UTF-16: convert the file to UTF-8"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: uncompress it first"),
    (b"PAR1", "is Parquet: give it a name that ends in .parquet"),
    (b"ARROW1", "is Arrow: give it a name that ends in .arrow"),
    (b"\xff\xff\xff\xff\x10", "is a stream of Arrow: give it a name that ends in .arrow"),
    ("sep=;\na;b\n1;2;3\n", "line 3, column 3: the row has 3 cells, the header has 2"),
    ("a;b\n1;2\n", r"line 1: has one column only; is the separator ';'\? \(--delimiter\)"),
    (
        "a,b\n1,2\n3\n",
        r"line 3, column 2: the row has 1 cell, the header has 2: 'b' is the first that is absent",
    ),
    ("a,b\n1,2,oops\n", r"line 2, column 3: the row has 3 cells, the header has 2: 'oops' is one too many"),
    ('a,b\n1,2\n"3,4\n', r"line 3: malformed CSV: unexpected end of data"),
    ('a,b\n"x"y,2\n', r"line 2: malformed CSV"),
    (b"a,b\n1,2\n1,\xe9\n", r"line 3: byte 3 \(0xe9\) is not UTF-8"),
    (b"a,b\n1,\x00\n", r"line 2: holds a zero byte"),
    (b"a\n" + b"x" * (MAX_LINE_BYTES + 1), r"line 2: is longer than"),
    ("a,b\r1,2\r", r"line 1: malformed CSV: lines end in CR alone"),
]


@pytest.mark.parametrize(("content", "words"), BAD_CSV)
def test_malformed_csv(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(FileError, match=words) as caught:
        list(table(tmp_path, "bad.csv", content))
    assert str(caught.value).startswith(str(tmp_path / "bad.csv"))


BAD_ARFF = [
    ("", "is empty: expected an ARFF header"),
    ("a,b\n1,2\n", "line 1: expected @relation, @attribute or @data, found 'a,b'"),
    ("@relation t\n@attribute a real\n", "line 2: ends without @data"),
    ("@relation t\n@data\n", "line 2: @data before any @attribute"),
    ("@attribute a relational\n", "is a relational attribute: a bag of rows is not a value"),
    ("@attribute a real {2}\n", "attribute weights are not supported"),
    ("@attribute a {x,y} {2}\n", "attribute weights are not supported"),
    ("@attribute a real real\n", "'real' is one too many"),
    ("@attribute a {x, y\n", "line 1, column 1.*expected ',' or '}'"),
    ("@attribute a {}\n", "no value is declared"),
    ("@attribute a {,x}\n", "expected a value, found ','"),
    ("@attribute a {x'y'}\n", "expected ',' or '}', found '"),
    ("@attribute a {x, x}\n", "the value 'x' is declared twice"),
    ("@attribute a real\n@attribute a real\n", r"line 2, column 2 \(a\): the name 'a' is taken already"),
    ("@attribute 'a real\n", "line 1, column 1: the quote ' is not closed"),
    (
        "@attribute '\\ud83c' real\n",
        "line 1, column 1: has half of a surrogate pair, which is not a character",
    ),
    (ARFF + "x\n", "line 5, column 2: the row has 1 value, 2 are declared: 'b' is absent"),
    (ARFF + "x \n", "line 5, column 2: the row has 1 value, 2 are declared: 'b' is absent"),
    (ARFF + "x,1,,\n", "line 5, column 3: the row has more than the 2 declared values"),
    (ARFF + "x,,1\n", "line 5, column 2: expected a value, found ','"),
    (ARFF + "x,\u00a0,1\n", "line 5, column 3: the row has more than the 2 declared values"),
    ("@attribute a {x}\n@data x y\n", "line 2, column 2: the row has more than the 1 declared value"),
    (ARFF + "x,1,2\n", "line 5, column 3: the row has more than the 2 declared values"),
    (ARFF + "x,1\nz,1\n", r"line 6, column 1 \(a\): 'z' is not one of the declared values 'x', 'y'"),
    (ARFF + "x,\n", "line 5, column 2: expected a value, found the end of the line"),
    (ARFF + "'x\n", "line 5, column 1: the quote ' is not closed"),
    (ARFF + "'x'1\n", "line 5, column 1: expected ',' after the value, found '1'"),
    (ARFF + "x,1,{a}\n", "line 5: the weight 'a' is not a number of at least 0"),
    (ARFF + "x,1,{-1}\n", "line 5: the weight '-1' is not a number of at least 0"),
    (ARFF + "x,1,{1\n", "line 5: expected '}' and the end of the line after the weight"),
    (ARFF + "x,1,{1} 2\n", "line 5: expected '}' and the end"),
    (ARFF + "{7 x}\n", r"line 5: '7' is not an attribute number in 0\.\.1"),
    (ARFF + "{1 2, 0 x}\n", "must increase"),
    (ARFF + "{0 x} 3\n", "line 5, column 3: the row has more than the 2 declared values"),
    (ARFF + "{0 x\n", "expected ',' or '}'"),
]


@pytest.mark.parametrize(("content", "words"), BAD_ARFF)
def test_malformed_arff(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        list(table(tmp_path, "bad.arff", content))


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (
            "string",
            r"line 2, column 2 \(d\): is a string attribute: free text .*, or leave it out with --ignore d",
        ),
        (
            "date 'w'",
            r"line 2, column 2 \(d\): has the date format 'w', which is not understood; .*--ignore d",
        ),
        ("", r"numeric, integer, real or {values}, found ''"),
        ("float {2}", "found 'float'"),
    ],
)
def test_columns_of_an_arff_file_that_are_no_attributes(tmp_path: Path, attribute: str, words: str) -> None:
    """They are refused where they would be one, and may hold ids, or be left out."""
    text = f"@attribute a real\n@attribute d {attribute}\n@attribute c {{p,q}}\n@data\n1,'x y',p\n2,?,q\n"
    opened = table(tmp_path, "t.arff", text)
    assert cells(opened) == [(5, ["1", "x y", "p"]), (6, ["2", None, "q"])]
    with pytest.raises(FileError, match=words):
        infer_schema(opened, class_column="c")
    assert [each.name for each in infer_schema(opened, class_column="c", ignore=["d"]).attributes] == ["a"]
    model = Specification([Numeric("a"), Nominal("d", "xy")], "pq")
    with pytest.raises(FileError, match=words):
        Binding(opened, model)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: No such file or directory"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(FileError, match="cannot be read: Unknown compression method"):
        table(tmp_path, "t.csv.gz", b"\x1f\x8b is not a gzip")
    with pytest.raises(FileError, match="cannot be read"):
        list(table(tmp_path, "t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 9999)[:-20]))
    with pytest.raises(FileError, match="the delimiter must be one character"):
        open_table(tmp_path / "t.csv.gz", delimiter="||")


def test_a_file_is_read_row_by_row(tmp_path: Path) -> None:
    opened = table(tmp_path, "t.csv", "a\n" + "1\n" * 1000 + "1,2\n")
    records = iter(opened)
    assert [next(records).line for _ in range(1000)][-1] == 1001  # the bad row below is not reached yet
    with pytest.raises(FileError, match="line 1002"):
        next(records)
