"""Files of rows that a command writes: the name says the format, and the file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import typer

from quercus.cli.common import fail
from quercus.cli.whole_files import written_whole
from quercus.files import writing
from quercus.files.writing import Format, OutputTable

ENDINGS: Final = ".csv, .jsonl (each also with .gz) or .parquet"
"""Endings of names that commands write; all of them read the same ones."""


def format_for(file: Path, form: str | None = None, *, otherwise: str = ", or give --format") -> Format:
    """Return the format of a file to write: as its name ends; `form` only says that of a name without such an ending.

    Raises
    ------
    typer.BadParameter
        When the name ends otherwise, or `form` contradicts it.
    """
    told = writing.format_of(file)
    name = file.name.lower()
    if name.endswith(".parquet.gz") or (form == "parquet" and name.endswith(".gz")):
        raise typer.BadParameter(f"{file}: Parquet is packed already, name the file without .gz")
    if told is None and form is None:
        raise typer.BadParameter(f"{file}: the name must end in {ENDINGS}{otherwise}")
    if told is not None and form not in {None, told}:
        raise typer.BadParameter(f"--format {form} contradicts the name {file.name}: omit one of them")
    return cast(Format, told or form)


def refuse_other_ending(option: str, file: Path | None, endings: Sequence[str]) -> None:
    """Refuse a name that promises another format than the one `option` writes; a pipe or a device has any name."""
    if file is None or not file.suffix or (file.exists() and not file.is_file()):
        return
    if not file.name.lower().endswith(tuple(endings)):
        raise typer.BadParameter(f"{option} {file}: the name must end in {' or '.join(endings)}")


def write_rows(output: OutputTable, file: Path, form: Format, *, for_spreadsheets: bool = False) -> int:
    """Write a table to a file, whole or not at all; return how many rows."""
    try:
        with written_whole(file) as part:
            packed = writing.is_packed(file)
            return writing.write_table(output, part, form, packed=packed, for_spreadsheets=for_spreadsheets)
    except writing.CannotWrite as error:
        fail(str(error))
