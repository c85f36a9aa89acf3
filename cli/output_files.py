"""Files that a command writes: the name determines the format, and a file is written completely or not at all.

A command succeeds only after its file is on the disk, under its name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Final, cast

import typer

from quercus.cli.common import StandardOutput, err, fail, print_json
from quercus.client.durable import replace_durably, sync_folder
from quercus.files import writing
from quercus.files.errors import NO_ROOM
from quercus.files.writing import Format, OutputTable

ENDINGS: Final = ".csv, .jsonl (each also with .gz), .parquet, .arrow or .feather"
"""Endings of the files that commands write; commands read them all."""
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=f"Write to this file: {ENDINGS}.", dir_okay=False),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format: csv, jsonl, parquet or arrow (default: by the ending of FILE).",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file or store.")]


def format_for(file: Path, form: str | None = None, *, otherwise: str = ", or give --format") -> Format:
    """Return the format of a file to write, by its ending; `form` is for names without one.

    Raises
    ------
    typer.BadParameter
        When the ending is unknown and there is no `form`, or `form` contradicts it.
    """
    told = writing.format_of(file)
    name = file.name.lower()
    if name.endswith((".parquet.gz", ".arrow.gz", ".feather.gz")) or (
        form in ("parquet", "arrow") and name.endswith(".gz")
    ):
        reason = "Parquet is already compressed, and Arrow is read in place"
        raise typer.BadParameter(f"{file}: {reason}: name the file without .gz")
    if told is None and form is None:
        raise typer.BadParameter(f"{file}: the name must end in {ENDINGS}{otherwise}")
    if told is not None and form not in {None, told}:
        raise typer.BadParameter(f"--format {form} contradicts the name {file.name}: omit one of them")
    return cast(Format, told or form)


def chosen_format(
    output: Path | None,
    form: str | None,
    for_files: Mapping[str, bool],
    *,
    for_spreadsheets: bool,
    force: bool,
) -> Format | None:
    """Return the format of a command's output; None: a table for people.

    Parameters
    ----------
    output, form
        The file and the format that were given.
    for_files
        Flags that need a file or a format, and whether they were given.
    for_spreadsheets, force
        Flags of the same kind.
    """
    if form is not None and form not in writing.FORMATS:
        raise typer.BadParameter(f"--format {form!r} is not one of {', '.join(writing.FORMATS)}")
    if output is None and form is None:
        for flag, given in {**for_files, "--for-spreadsheets": for_spreadsheets, "--force": force}.items():
            if given:
                raise typer.BadParameter(f"{flag} is for files: give -o FILE or --format")
        return None
    chosen = cast(Format, form) if output is None else format_for(output, form)
    if chosen in ("parquet", "arrow") and output is None:
        raise typer.BadParameter(f"--format {chosen} needs a file: -o FILE")
    if for_spreadsheets and chosen != "csv":
        raise typer.BadParameter(f"--for-spreadsheets is for CSV, not for {chosen}")
    if output is not None:
        refuse_existing(output, force)
    return chosen


def write_chosen(
    table: OutputTable, output: Path | None, form: Format, what: str, *, for_spreadsheets: bool, as_json: bool
) -> None:
    """Write a table to a file and report its number of rows, or write it to standard output."""
    if output is not None:
        count = write_rows(table, output, form, for_spreadsheets=for_spreadsheets)
        if as_json:
            print_json({"file": str(output), what: count})
        else:
            err.print(f"wrote {count:,} {what} to {output}", soft_wrap=True)
    elif form == "csv":
        writing.write_csv(table, StandardOutput(), for_spreadsheets=for_spreadsheets)
    else:
        writing.write_jsonl(table, StandardOutput())


def refuse_other_ending(option: str, file: Path | None, endings: Sequence[str]) -> None:
    """Refuse a file name whose ending is not that of `option`; a pipe or a device may have any name."""
    if file is None or not file.suffix or (file.exists() and not file.is_file()):
        return
    if not file.name.lower().endswith(tuple(endings)):
        raise typer.BadParameter(f"{option} {file}: the name must end in {' or '.join(endings)}")


def write_rows(output: OutputTable, file: Path, form: Format, *, for_spreadsheets: bool = False) -> int:
    """Write a table to a file, completely or not at all; return the number of rows."""
    try:
        with written_whole(file) as part:
            packed = writing.is_packed(file)
            return writing.write_table(output, part, form, packed=packed, for_spreadsheets=for_spreadsheets)
    except writing.CannotWrite as error:
        fail(str(error))


def refuse_existing(file: Path, force: bool) -> None:
    """Refuse to replace a file unless the user said so; a pipe or a device is not replaced but written to."""
    if file.is_file() and not force:
        raise typer.BadParameter(f"{file} exists; give --force to replace it")


def refuse_input(option: str, output: Path | None, *inputs: Path | None) -> None:
    """Refuse to overwrite a file that the command reads, even under another name."""
    for each in inputs:
        if output is not None and each is not None and output.exists() and output.samefile(each):
            raise typer.BadParameter(
                f"{option} {output} is {each}, which this command reads: name another file"
            )


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Yield the path of a new file beside ``file``, which takes its place when the block ends without an error.

    It is on the disk, under its name, before the next statement runs. A pipe or a device is written to directly.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(exist_ok=False)  # fails if there is a link of that name
        if file.exists():
            part.chmod(stat.S_IMODE(file.stat().st_mode))  # a private file stays private
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    try:
        yield part
    except OSError as error:
        if error.errno in NO_ROOM:  # a library's error names no file
            fail(f"cannot write {file}: {os.strerror(error.errno)}")
        raise
    else:
        try:
            replace_durably(part, file)
        except OSError as error:
            fail(f"cannot write {file}: {error.strerror}")
    finally:
        part.unlink(missing_ok=True)


def write_drawn(file: Path, content: str | bytes) -> None:
    """Write a drawn tree to a file."""
    try:
        with written_whole(file) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    err.print(f"wrote {file}", style="dim", soft_wrap=True)


@contextmanager
def created_privately(file: Path) -> Iterator[IO[str]]:
    """Create a text file that only this user may read; it is removed if the block fails, else flushed to the disk."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                yield stream
                stream.flush()
                os.fsync(descriptor)
            sync_folder(file.parent)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
    except FileExistsError:
        fail(f"{file} exists, and is never overwritten: name another file")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
