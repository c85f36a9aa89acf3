"""Creation of a model from a file: the console suggests the use of columns and labels, and the user decides."""

from __future__ import annotations

import asyncio
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.client.errors import QuercusError, Unauthenticated
from quercus.client.places import faults_of, plain_text
from quercus.client.specifications import Specification
from quercus.console.learner_form import LearnerForm
from quercus.console.model_plan import (
    ATTRIBUTES,
    COMMA,
    KEEP,
    KINDS,
    NO_ROWS,
    ModelPlan,
    guess_file,
)
from quercus.console.row_parts import item_address
from quercus.console.sessions import Session, Upload
from quercus.console.web import (
    check_may,
    console_of,
    read_posted,
    render_fragment,
    render_page,
    session_of,
    status_of,
    whole_number_field,
)
from quercus.files.csv_format import likely_delimiter
from quercus.files.displays import display_of
from quercus.files.errors import FileError
from quercus.files.faults import naming_columns
from quercus.files.inspection import RemarkError
from quercus.files.labels import label_of
from quercus.files.leaks import LeakError
from quercus.files.opening import open_table
from quercus.files.pushing import FilePush, FileRows
from quercus.files.schema import Binding, FileSchema, infer_schema
from quercus.files.table import FileRecord, FileTable, listed_names
from quercus.files.words import typed_classes
from quercus.specification import parameters
from quercus.specification.attributes import Numeric
from quercus.view.rows import ShownItem, ShownValue, pushed_items

PARSE_S = 600.0
COUNTED_ROWS: Final = 5_000
MOST_PREVIEWED: Final = 12
"""Number of values in the preview of a row."""
DEFAULT_CUTS: Final = "32"
"""Number of thresholds of a numeric column in the form."""
SHOWN_REFUSED = 50
"""Maximum number of refused rows that the page lists."""
SUFFIXES = (".csv", ".arff", ".csv.gz", ".arff.gz")
_ADVICE = (
    (r" with --ignore (\S+|'.*?')", ""),
    (r"rename the column, or leave it out with --ignore .*", "rename the column, or leave it out"),
    (r"name them all with --classes A,B,C", "type them all"),
)
"""Advice of `quercus models create` in errors about files, with its replacement on this page."""


async def progress(request: Request) -> Response:
    """Report the progress of reading or creating, for the script of the page."""
    return JSONResponse({"said": session_of(request).progress})


async def create(request: Request) -> Response:
    """Accept a file, show the plan for its columns, then create the model."""
    session = session_of(request)
    check_may(session, "ModelService/CreateModel")
    if request.method == "GET":
        left = session.making.left
        fault = "" if left is None else left.describe_left()
        return render_page(request, "create.html", upload=None, fault=fault)
    given = await read_posted(request, session)
    files = given.get("file", [])
    chosen: dict[str, Any] = {
        name: values[0] for name, values in given.items() if values and isinstance(values[0], str)
    }
    chosen["attributes"] = [str(each) for each in given.get("attribute", [])]
    try:
        if files and isinstance(files[0], UploadFile) and files[0].filename:
            upload = await _keep_upload(session, files[0])
            return _columns_page(request, upload, {})
        if session.upload is None:
            raise HTTPException(409, "the file is no longer here: choose it again")
        plan = ModelPlan.of(session.upload.guess, chosen)
        if chosen.get("act") == "plan":  # a script shows the effect of the choices
            return HTMLResponse(
                render_fragment(
                    "create_plan.html", plan=plan, previews=_previews(request, session.upload, plan)
                )
            )
        learner = LearnerForm(session.upload.learners, chosen, {})
        if chosen.get("act") == "settings":
            return HTMLResponse(render_fragment("create_learner.html", learner=learner))
        made = await in_thread(_read_plan, session, session.upload, plan)
        learner.check()
        if chosen.get("act") == "check":
            return _columns_page(request, session.upload, chosen)
        return await _make_model(request, session, session.upload, plan, made, learner)
    except Unauthenticated:
        raise
    except (FileError, InvalidInput, QuercusError, ValueError) as error:
        return _show_again(request, session, chosen, error)
    finally:
        session.progress = ""


def _show_again(request: Request, session: Session, chosen: dict[str, Any], error: Exception) -> Response:
    """Show the form again, with the error and the state of an incomplete model."""
    status = status_of(error) if isinstance(error, QuercusError) else 400
    if session.upload is None:
        return render_page(request, "create.html", status, upload=None, fault=plain_text(error))
    reason = _on_this_page(error).replace(str(session.upload.path), session.upload.name)
    if session.making.left is not None:
        reason = f"{reason}. {session.making.left.describe_left()}"
    faults = {field.removeprefix("specification."): fault for field, fault in faults_of(error)}
    return _columns_page(request, session.upload, chosen, reason, status, faults)


def _on_this_page(error: Exception) -> str:
    """Return an error with advice for this page instead of the flags of `quercus models create`."""
    if isinstance(error, LeakError):
        named = listed_names([repr(name) for name in error.columns])
        return (
            f"{named} would become an attribute, and looks like a column of labels: choose it as the column of the "
            "class, leave it out, or say below that it is an attribute"
        )
    if isinstance(error, RemarkError):
        return f"{error.remark.sentence}: choose another kind, or leave it out"
    reason = plain_text(error)
    for flag, advice in _ADVICE:
        reason = re.sub(flag, advice, reason)
    return reason


async def _keep_upload(session: Session, file: UploadFile) -> Upload:
    """Store the uploaded file for the next step."""
    check_ending(file)
    session.drop_upload()
    learners = await session.client.learners()
    folder = tempfile.TemporaryDirectory(prefix="quercus-console-")
    path, name = await save_upload(file, folder.name)
    try:
        guess = await in_thread(guess_file, _counted(open_file(path), session, "read"))
    except FileError as error:
        folder.cleanup()
        raise InvalidInput("file", str(error).replace(str(path), name)) from None
    except InvalidInput:
        folder.cleanup()
        raise
    session.upload = Upload(folder, path, name, guess, learners)
    return session.upload


def check_ending(file: UploadFile) -> str:
    """Return the ending of an uploaded file's name.

    Raises
    ------
    InvalidInput
        If it is not one of `SUFFIXES`.
    """
    name = Path(file.filename or "").name
    suffix = next((each for each in SUFFIXES if name.lower().endswith(each)), None)
    if suffix is None:
        raise InvalidInput("file", f"is {name[:80]!r}, must end in {', '.join(SUFFIXES)}")
    return suffix


async def save_upload(file: UploadFile, folder: str) -> tuple[Path, str]:
    """Write an uploaded file to a folder; return its path and its original name."""
    path = Path(folder) / f"upload{check_ending(file)}"
    with path.open("wb") as target:
        while piece := await file.read(1024 * 1024):
            await asyncio.to_thread(target.write, piece)
    return path, Path(file.filename or "").name


async def in_thread(work: Any, *given: Any) -> Any:
    """Run a parser in a thread, for a bounded time."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(work, *given), PARSE_S)
    except TimeoutError:
        raise InvalidInput(
            "file", f"took longer than {PARSE_S:g} s to read; use quercus models create"
        ) from None


def open_file(path: Path) -> FileTable:
    """Open the file; if it is CSV, with the separator of its header."""
    if path.name.removesuffix(".gz").endswith(".arff"):
        return open_table(path, quietly=True)
    return open_table(path, delimiter=likely_delimiter(path), quietly=True)


def _counted(table: FileTable, session: Session, done: str, total: int = 0) -> FileTable:
    """Return a table that records in the session the number of rows read so far."""
    read, of = table.read, f" of {total:,}" if total else ""

    def counting() -> Iterator[FileRecord]:
        for number, record in enumerate(read()):
            if number % COUNTED_ROWS == 0 and number:
                session.progress = f"{number:,}{of} rows are {done}"
            yield record

    return replace(table, read=counting)


@dataclass(frozen=True)
class Preview:
    """A row of the file as a labeller will see it; the fault of a cell replaces its item."""

    title: str
    values: list[tuple[str, list[ShownValue]]]
    beside: list[tuple[ShownItem, str]]
    fault: str


def _previews(request: Request, upload: Upload, plan: ModelPlan) -> list[Preview]:
    """Return the first rows of the file as a labeller will see them."""
    table, kinds, origins = _planned_table(upload, plan), plan.kinds, console_of(request).config.media
    ids = None if plan.id_column is None else table.names.index(plan.id_column)
    found = []
    for number, record in enumerate(plan.guess.samples, 1):
        values = []
        for name, cell in zip(table.names, record.cells, strict=True):
            if kinds.get(name) in ATTRIBUTES:
                text = "missing" if cell is None else cell.replace(",", ".") if kinds[name] == COMMA else cell
                values.append(ShownValue(name, text, cell is None, "", name))
        fault = ""
        try:
            display = tuple(display_of(table, record, plan.shown_columns()) or ())
        except FileError as error:
            display, fault = (), error.reason
        title = f"{_stem(upload)}-{number}" if ids is None else record.cells[ids] or ""
        items = [item_address(item, origins, "") for item in pushed_items(display)]
        items = [(item, "" if item.data else address) for item, address in items]
        found.append(Preview(title, [("", values[:MOST_PREVIEWED])] if values else [], items, fault))
    return found


def _planned_table(upload: Upload, plan: ModelPlan) -> FileTable:
    """Open the file as the plan reads it."""
    return replace(open_file(upload.path), commas=plan.commas)


def _columns_page(
    request: Request,
    upload: Upload,
    chosen: dict[str, Any],
    fault: str = "",
    status: int = 200,
    faults: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """Show the columns of the file and the plan; ``faults`` are reasons by field of the learner."""
    stem = _stem(upload).lower()
    defaults = {
        "model": "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem)[:63]
        or "model",
        "budget": "40",
        "cuts": DEFAULT_CUTS,
    }
    try:
        plan = ModelPlan.of(upload.guess, chosen or None)
    except InvalidInput:  # not a choice that the page offers
        plan, chosen = ModelPlan.of(upload.guess, None), {}
    return render_page(
        request,
        "create.html",
        status,
        upload=upload,
        fault=fault,
        plan=plan,
        previews=_previews(request, upload, plan),
        kinds=KINDS,
        given=defaults | chosen,
        cuts=DEFAULT_CUTS,
        bins=parameters.BINS.default,
        learner=LearnerForm(upload.learners, chosen, faults),
    )


def _read_plan(session: Session, upload: Upload, plan: ModelPlan) -> FileSchema:
    """Return the attributes and classes of a file by a plan."""
    kinds, guessed = plan.kinds, {each.name: each.kind for each in upload.guess.columns}
    if plan.class_column is None and not plan.typed:
        raise InvalidInput(
            "class", "choose the column that holds the class, or type the names of the classes"
        )
    if plan.id_column is not None and plan.id_column == plan.class_column:
        raise InvalidInput("id", f"is {plan.id_column!r}, which is the column of the class")
    return infer_schema(
        _counted(_planned_table(upload, plan), session, "checked", plan.guess.rows),
        class_column=plan.class_column,
        ignore={name for name, kind in kinds.items() if kind not in ATTRIBUTES},
        nominal={name for name, kind in kinds.items() if kind == "names" != guessed[name]},
        numeric={name for name, kind in kinds.items() if kind == COMMA or kind == "number" != guessed[name]},
        attributes=[name for name in plan.attributes if kinds.get(name) in ATTRIBUTES],
        frame=typed_classes(plan.typed) if plan.typed else (),
    )


async def _make_model(
    request: Request,
    session: Session,
    upload: Upload,
    plan: ModelPlan,
    schema: FileSchema,
    learner: LearnerForm,
) -> Response:
    """Create the model, and push the rows."""
    name, cuts = (
        plan.given.get("model", ""),
        whole_number_field(plan.given, "cuts", 0, parameters.CUTS.highest),
    )
    attributes = [replace(a, cuts=cuts or None) if isinstance(a, Numeric) else a for a in schema.attributes]
    budget = whole_number_field(plan.given, "budget", 0, parameters.BUDGET.highest)
    specification = Specification(attributes, schema.classes, budget=budget, **learner.fields())
    with naming_columns(_planned_table(upload, plan), specification, plan.class_column):
        model = await session.making.create_model(session.client, name, specification)
    refused = RefusedRows()
    if plan.labels != NO_ROWS:
        pushed = FilePush(_rows_of(upload, plan, specification), refused.take)

        def say(report: Any) -> None:
            session.progress = f"{report.rows:,} of {plan.guess.rows:,} rows are sent"

        try:
            await session.client.push(name, on_progress=say, **pushed.arguments())
        except (FileError, InvalidInput, QuercusError, ValueError):
            await session.making.remove_model(
                session.client, model
            )  # the form is shown again, and needs the name
            raise
    session.making.forget_left(name)
    session.drop_upload()
    if refused.count:
        command = _push_command(name, upload, plan)
        return render_page(
            request, "refused.html", model=name, file=upload.name, refused=refused, command=command
        )
    is_to_label = plan.class_column is None and budget and session.may_call("QueryService/LeaseQueries")
    return RedirectResponse(f"/m/{name}/label" if is_to_label else f"/m/{name}", 303)


def _push_command(name: str, upload: Upload, plan: ModelPlan) -> str:
    """Return the command that pushes corrected rows in the same way as the page pushed the others."""
    ids = ["--id-prefix", f"{_stem(upload)}-mended-"]
    if plan.id_column is not None:
        ids = ["--id-column", plan.id_column]
    labels = []
    if plan.class_column is not None and plan.labels == KEEP:
        labels = ["--labels", "--class", plan.class_column]
    return f"quercus push {name} FILE {shlex.join([*ids, *labels])}"


def _stem(upload: Upload) -> str:
    return upload.name.split(".")[0]


def _rows_of(upload: Upload, plan: ModelPlan, specification: Specification) -> FileRows:
    """Return the rows of the file; their ids are those in the chosen column, or the row numbers."""
    table = _planned_table(upload, plan)
    label = None
    if plan.class_column is not None and plan.labels == KEEP:
        k = table.position(plan.class_column, "class")
        label = partial(label_of, table, k=k, classes=specification.classes)
    at = None if plan.id_column is None else table.position(plan.id_column, "id")
    prefix = f"{_stem(upload)}-" if at is None else ""
    return FileRows(Binding(table, specification), label, None, at, prefix, plan.shown_columns(), first=1)


@dataclass
class RefusedRows:
    """The number of refused rows, and the first of them with line and reason."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def take(self, record: FileRecord, _: str, reason: str) -> None:
        """Record a refused row."""
        self.count += 1
        if len(self.first) < SHOWN_REFUSED:
            self.first.append((record.line, reason))
