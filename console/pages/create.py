"""Creation of a model from a file: the console guesses the kinds of the columns, and the user decides."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.client.errors import QuercusError, Unauthenticated
from quercus.client.results import Specification
from quercus.console.sessions import Session
from quercus.console.web import check_may, read_posted, render_page, session_of, status_of
from quercus.files.csv_format import likely_delimiter
from quercus.files.errors import FileError
from quercus.files.opening import open_table
from quercus.files.schema import Binding, FileSchema, class_column, finite_number, infer_schema
from quercus.files.table import FileTable
from quercus.specification import parameters
from quercus.specification.attributes import Numeric
from quercus.specification.parameter import Parameter

MAX_COLUMNS = 500
MAX_ROWS = 200_000
PARSE_S = 60.0
EXAMPLES = 4
SUFFIXES = (".csv", ".arff", ".csv.gz", ".arff.gz")


@dataclass(frozen=True)
class Upload:
    """A file that was uploaded; it is gone from the disk when the session ends, or another takes its place."""

    folder: tempfile.TemporaryDirectory[str]
    path: Path
    name: str

    def remove(self) -> None:
        """Delete it."""
        self.folder.cleanup()


@dataclass(frozen=True)
class UploadedColumn:
    """A column, the kind that is guessed, and its first values."""

    name: str
    kind: str
    examples: str


async def create(request: Request) -> Response:
    """Take a file, show the likely kinds of its columns, then create the model."""
    session = session_of(request)
    check_may(session, "ModelService/CreateModel")
    if request.method == "GET":
        left = session.making.left
        fault = "" if left is None else left.describe_left()
        return render_page(request, "create.html", upload=None, fault=fault, columns=[], given={})
    given = await read_posted(request, session)
    files = given.get("file", [])
    try:
        if files and isinstance(files[0], UploadFile) and files[0].filename:
            upload = await _keep_upload(session, files[0])
            return await _columns_page(request, upload, {})
        if session.upload is None:
            raise HTTPException(409, "the file is not here any more: choose it again")
        return await _make_model(session, session.upload, given)
    except Unauthenticated:
        raise
    except (FileError, InvalidInput, QuercusError, ValueError) as error:
        return await _show_again(request, session, given, error)


async def _show_again(
    request: Request, session: Session, given: dict[str, Any], error: Exception
) -> Response:
    """Show the form again, with the error, and what is left of the model."""
    status = status_of(error) if isinstance(error, QuercusError) else 400
    if session.upload is None:
        return render_page(
            request, "create.html", status, upload=None, fault=str(error), columns=[], given={}
        )
    reason = str(error).replace(str(session.upload.path), session.upload.name)
    if session.making.left is not None:
        reason = f"{reason}. {session.making.left.describe_left()}"
    return await _columns_page(request, session.upload, given, reason, status)


async def _keep_upload(session: Session, file: UploadFile) -> Upload:
    """Keep the uploaded file for the next step."""
    name = Path(file.filename or "").name
    suffix = next((each for each in SUFFIXES if name.lower().endswith(each)), None)
    if suffix is None:
        raise InvalidInput("file", f"is {name[:80]!r}, must end in {', '.join(SUFFIXES)}")
    session.drop_upload()
    folder = tempfile.TemporaryDirectory(prefix="quercus-console-")
    path = Path(folder.name) / f"upload{suffix}"
    with path.open("wb") as target:
        while piece := await file.read(1024 * 1024):
            await asyncio.to_thread(target.write, piece)
    session.upload = Upload(folder, path, name)
    try:
        await _in_thread(_guess_columns, path)
    except (FileError, InvalidInput) as error:
        session.drop_upload()
        raise InvalidInput("file", str(error).replace(str(path), name)) from None
    return session.upload


async def _in_thread(work: Any, *given: Any) -> Any:
    """Run a parser in a thread, for a bounded time."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(work, *given), PARSE_S)
    except TimeoutError:
        raise InvalidInput(
            "file", f"took longer than {PARSE_S:g} s to read; use quercus models create"
        ) from None


def _open_file(path: Path) -> FileTable:
    """Open the file, with the separator of its header if it is CSV."""
    if path.name.removesuffix(".gz").endswith(".arff"):
        return open_table(path)
    return open_table(path, delimiter=likely_delimiter(path))


def _guess_columns(path: Path) -> tuple[list[UploadedColumn], str | None, int]:
    """Return the columns of a file with their likely kinds, the class column, and the number of rows."""
    table = _open_file(path)
    if len(table.names) > MAX_COLUMNS:
        raise InvalidInput(
            "file", f"has {len(table.names):,} columns, the console takes at most {MAX_COLUMNS}"
        )
    is_number, seen, rows = [True] * len(table.names), [list[str]() for _ in table.names], 0
    for record in table:
        rows += 1
        if rows > MAX_ROWS:
            raise InvalidInput(
                "file", f"has more than {MAX_ROWS:,} rows; use quercus models create and quercus push"
            )
        for k, cell in enumerate(record.cells):
            if cell is None:
                continue
            is_number[k] = is_number[k] and finite_number(cell) is not None
            if len(seen[k]) < EXAMPLES and cell not in seen[k]:
                seen[k].append(cell[:40])
    kinds = [
        "number" if numeric and values else "names" for numeric, values in zip(is_number, seen, strict=True)
    ]
    columns = [
        UploadedColumn(name, kind if values else "leave out", ", ".join(values))
        for name, kind, values in zip(table.names, kinds, seen, strict=True)
    ]
    return columns, class_column(table, None), rows


async def _columns_page(
    request: Request, upload: Upload, given: dict[str, Any], fault: str = "", status: int = 200
) -> Response:
    """Show the columns of the file."""
    columns, class_name, rows = await _in_thread(_guess_columns, upload.path)
    chosen = {name: str(values[0]) for name, values in given.items() if values and isinstance(values[0], str)}
    stem = upload.name.split(".")[0].lower()
    defaults = {
        "model": "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem)[:63]
        or "model",
        "class": class_name or "",
        "budget": "40",
        "cuts": "32",
        "labels": "ask",
        "id": next((each.name for each in columns if each.name.lower() == "id"), ""),
    }
    return render_page(
        request,
        "create.html",
        status,
        upload=upload,
        fault=fault,
        columns=columns,
        rows=rows,
        given=defaults | chosen,
    )


async def _make_model(session: Session, upload: Upload, given: dict[str, Any]) -> Response:
    """Create the model, and push the rows."""
    one = {name: str(values[0]) for name, values in given.items() if values}
    name = one.get("model", "")
    table = _open_file(upload.path)
    kinds = {column: one.get(f"kind-{k}", "") for k, column in enumerate(table.names)}
    class_name, id_name = one.get("class") or None, one.get("id") or None
    if class_name is None:
        raise InvalidInput("class", "choose the column that holds the class; its values name the classes")
    ignore = {column for column, kind in kinds.items() if kind == "leave out" and column != class_name}
    ignore |= {id_name} if id_name and id_name != class_name else set()
    nominal = {column for column, kind in kinds.items() if kind == "names"} - ignore
    kept = set(table.names) - ignore - {class_name}
    schema: FileSchema = await _in_thread(_infer_schema, table, class_name, ignore, nominal, kept)
    cuts = _parse_integer(one, "cuts", parameters.CUTS)
    attributes = [replace(a, cuts=cuts or None) if isinstance(a, Numeric) else a for a in schema.attributes]
    budget = _parse_integer(one, "budget", parameters.BUDGET)
    specification = Specification(attributes, schema.classes, budget=budget)
    model = await session.making.create_model(session.client, name, specification)
    if one.get("labels") != "none":
        rows = _Rows(table, specification, class_name, id_name, upload.name)
        labels = rows.labels() if one.get("labels") == "known" else None
        try:
            await session.client.push(name, rows.values(), labels, rows.ids())
        except (FileError, InvalidInput, QuercusError, ValueError):
            await session.making.remove_model(
                session.client, model
            )  # the form is shown again, and needs its name
            raise
    session.making.forget_left(name)
    session.drop_upload()
    return RedirectResponse(f"/m/{name}", 303)


def _infer_schema(
    table: FileTable, class_name: str, ignore: set[str], nominal: set[str], kept: set[str]
) -> FileSchema:
    return infer_schema(table, class_column=class_name, ignore=ignore, nominal=nominal, attributes=kept)


@dataclass(frozen=True)
class _Rows:
    """The rows of a file for a push."""

    table: FileTable
    specification: Specification
    class_name: str
    id_name: str | None
    file: str

    def values(self) -> Iterator[list[Any]]:
        """Yield the values."""
        return iter(Binding(self.table, self.specification))

    def labels(self) -> Iterator[Any]:
        """Yield the classes of the class column; sets where there are several."""
        at = self.table.position(self.class_name, "class")
        for record in self.table:
            cell = record.cells[at]
            names = None if cell is None else cell.split("|")
            yield None if names is None else names[0] if len(names) == 1 else frozenset(names)

    def ids(self) -> Iterator[str]:
        """Yield an id for each row: of its column, else the number of its line."""
        if self.id_name is None:
            yield from (
                f"{self.file.split('.')[0]}-{k}" for k, _ in enumerate(islice(self.table, MAX_ROWS), 1)
            )
            return
        at = self.table.position(self.id_name, "id")
        for record in self.table:
            cell = record.cells[at]
            if cell is None:
                raise self.table.error(record, at, "has no id")
            yield cell


def _parse_integer(given: dict[str, str], name: str, parameter: Parameter) -> int:
    """Return a whole number from 0 to the parameter's upper bound."""
    text, highest = given.get(name, "").strip(), int(parameter.highest)
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) <= highest):
        raise InvalidInput(name, f"is {text[:40]!r}, must be a whole number in [0, {highest:,}]")
    return int(text)
