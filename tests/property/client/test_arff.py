"""Every table written as ARFF is read back: dense or sparse, quoted either way, with blanks, tabs and comments."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quercus.files import open_table

TEXT = st.text(st.sampled_from(list("ab?é%'\"\\{},@ \t\n\r0")), min_size=1, max_size=6).filter(str.strip)
BARE = set("ab?é0")
ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "%": "\\%", "é": "\\u00e9"}


def written(draw: st.DrawFn, text: str) -> str:
    if set(text) <= BARE and text != "?" and draw(st.booleans()):
        return text
    quote = draw(st.sampled_from("'\""))
    escaped = ESCAPED | {quote: "\\" + quote}
    return (
        quote
        + "".join(escaped.get(c, c) if c in "\\\n\r" + quote or draw(st.booleans()) else c for c in text)
        + quote
    )


@st.composite
def files(
    draw: st.DrawFn,
) -> tuple[str, list[tuple[str, tuple[str, ...]]], list[tuple[list[str | None], float]]]:
    """An ARFF file, its columns, its rows with their weights."""
    blank = st.sampled_from([" ", "  ", "\t"])
    columns = []
    lines = ["@relation 'it is\\'s' % a comment", ""]
    for name in draw(st.lists(TEXT, min_size=1, max_size=4, unique=True)):
        values = tuple(draw(st.one_of(st.just([]), st.lists(TEXT, min_size=1, max_size=4, unique=True))))
        kind = "{" + ",".join(written(draw, value) for value in values) + "}" if values else draw(
            st.sampled_from(["real", "NUMERIC", "Integer"])
        )  # fmt: skip
        lines.append(f"@attribute{draw(blank)}{written(draw, name)}{draw(blank)}{kind}")
        columns.append((name, values))
    lines.append("@data")
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        cells = [
            draw(st.none() | (st.sampled_from(v) if v else st.sampled_from(["1", "-2.5e3", "0"])))
            for _, v in columns
        ]
        texts = ["?" if cell is None else written(draw, cell) for cell in cells]
        if draw(st.booleans()):
            default = [values[0] if values else "0" for _, values in columns]
            kept = [k for k, cell in enumerate(cells) if cell != default[k] or draw(st.booleans())]
            row = "{" + ", ".join(f"{k} {texts[k]}" for k in kept) + "}"
        else:
            row = draw(st.sampled_from([",", " , ", "\t", " "])).join(texts)
        weight = draw(st.sampled_from([1.0, 0.5, 2.0]))
        row += "" if weight == 1.0 else draw(st.sampled_from([", ", " "])) + f"{{{weight}}}"
        lines += [
            row + draw(st.sampled_from(["", " ", " % more"])),
            *draw(st.sampled_from([[], ["", "% none"]])),
        ]
        rows.append((cells, weight))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines), columns, rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(files())
def test_what_is_written_is_read(
    tmp_path: Path,
    file: tuple[str, list[tuple[str, tuple[str, ...]]], list[tuple[list[str | None], float]]],
) -> None:
    text, columns, rows = file
    path = tmp_path / "t.arff"
    path.write_bytes(text.encode())
    table = open_table(path)
    assert [(column.name, column.values) for column in table.columns] == columns
    assert [(list(record.cells), record.weight) for record in table] == rows
