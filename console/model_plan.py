"""The plan of a new model: the roles of its file's columns, as guessed or as chosen, in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from quercus.belief.errors import InvalidInput, shown
from quercus.files.displays import DisplayColumn
from quercus.files.inspection import (
    DECIMAL_COMMA,
    Choices,
    InspectedColumn,
    Remark,
    inspect_columns,
    inspect_rows,
    written_form,
)
from quercus.files.leaks import CLASS, ColumnContent, names_classes, names_sets
from quercus.files.schema import class_column, names_of
from quercus.files.seen import see_table
from quercus.files.table import FileRecord, FileTable, listed_names
from quercus.files.words import typed_classes
from quercus.specification.parameters import MAX_CLASSES
from quercus.specification.values import finite_number
from quercus.specification.written_labels import set_parts
from quercus.view.words import counted

MAX_COLUMNS: Final = 500
MAX_ROWS: Final = 1_000_000
SAMPLES: Final = 3
"""Number of rows that are previewed as a labeller will see them."""
EXAMPLES: Final = 4
MAX_SEEN: Final = 4 * MAX_CLASSES
"""Maximum number of distinct values kept of a column; a column with more is never taken as the class."""
LEFT_OUT: Final = "leave out"
COMMA: Final = "number (1,5)"
SHOWN: Final = {"text": "text", "picture": "image", "series": "series", "link": "link"}
"""Kinds of columns that labellers see beside the row and that no tree learns from, with the kinds of their items."""
NUMBERS: Final = ("number", COMMA)
ATTRIBUTES: Final = (*NUMBERS, "names")
"""Kinds of columns that become attributes."""
KINDS: Final = (*ATTRIBUTES, *SHOWN, LEFT_OUT)
WORDS_OF_TEXT: Final = 5
"""Minimum mean number of words for cells to be free text."""
SERIES_LENGTH: Final = 4
"""Minimum number of numbers in a cell for it to be a series."""
_URL: Final = re.compile(r"https?://\S+")
_PICTURE: Final = re.compile(
    r"(?:https?://\S+\.(?:png|jpe?g|gif|webp)(?:\?\S*)?|data:image/\S+)", re.IGNORECASE
)
_PATH: Final = re.compile(r"[^|<>\"?*]*\.(?:png|jpe?g|gif|webp|bmp|tiff?|wav|mp3|ogg|flac)", re.IGNORECASE)
KEEP, HIDE, NO_ROWS = "known", "ask", "none"
LABELS: Final = {
    KEEP: "keep them: they teach the model",
    HIDE: "hide them: ask about all rows",
    NO_ROWS: "send no rows at all",
}
UNLABELLED: Final = {KEEP: "send them: none of them is labelled", NO_ROWS: LABELS[NO_ROWS]}
"""The choices where no column holds labels."""


@dataclass(frozen=True)
class UploadedColumn:
    """A column: its guessed kind, its first values, the number of cells with a value, and distinct values.

    ``remarks`` say what looks wrong if it becomes an attribute; ``found`` says why it is taken for something other than
    a number or a name.
    """

    name: str
    kind: str
    examples: str
    known: int
    values: frozenset[str]
    numeric: bool = False
    remarks: tuple[Remark, ...] = ()
    found: str = ""

    @property
    def open_remarks(self) -> set[str]:
        """The kinds of remarks that also apply after a kind is chosen for the column."""
        return {each.kind for each in self.remarks if each.outcome == "said" or each.kind == "uncertain"}

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that the column would give; empty if there are too many."""
        names = names_of(sorted({name for value in self.values for name in set_parts(value)}))
        return names if len(names) <= MAX_CLASSES else ()

    @property
    def content(self) -> ColumnContent:
        """The properties that the rules about columns of labels use."""
        return ColumnContent(self.name, self.values, self.numeric)


@dataclass(frozen=True)
class FileGuess:
    """The columns of a file, the likely class column, the number of rows, what looks wrong in it, and some rows."""

    columns: tuple[UploadedColumn, ...]
    class_column: str | None
    rows: int
    doubts: tuple[str, ...] = ()
    samples: tuple[FileRecord, ...] = ()


def guess_file(table: FileTable) -> FileGuess:
    """Read a file, and guess the kinds of its columns.

    Raises
    ------
    InvalidInput
        If it has too many columns or rows.
    FileError
        If it cannot be read.
    """
    if len(table.names) > MAX_COLUMNS:
        raise InvalidInput(
            "file", f"has {len(table.names):,} columns, the console takes at most {MAX_COLUMNS}"
        )
    seen = see_table(table, most_rows=MAX_ROWS)
    if seen.first_fault is not None and not seen.rows:
        raise seen.first_fault
    if seen.rows > MAX_ROWS:
        raise InvalidInput(
            "file", f"has more than {MAX_ROWS:,} rows; use quercus models create and quercus push"
        )
    columns = tuple(map(_uploaded_column, inspect_columns(seen, Choices())))
    return FileGuess(
        columns,
        _likely_class(table),
        seen.rows,
        (
            *(f"line {each.line} {each.says}." for each in table.doubts),
            *(f"{each.says}. Such rows are not sent, and listed afterwards." for each in inspect_rows(seen)),
        ),
        tuple(islice(table.whole_rows(), SAMPLES)),
    )


def _uploaded_column(column: InspectedColumn) -> UploadedColumn:
    seen = column.seen
    doubtful = any(each.outcome == "refused" and each.kind != "uncertain" for each in column.remarks)
    kind = (
        LEFT_OUT if doubtful or not column.is_attribute else "names" if column.role == "names" else "number"
    )
    special, found = _special_kind(list(islice(seen.texts, MAX_SEEN)), column.remarks, not seen.numbers)
    if special:
        kind = special
    return UploadedColumn(
        seen.name,
        kind,
        ", ".join(cell[:40] for cell in islice(seen.values, EXAMPLES)),
        seen.known,
        frozenset(seen.values if len(seen.values) <= MAX_SEEN else ()),
        seen.is_numeric,
        column.remarks,
        found,
    )


def _special_kind(
    texts: Sequence[str], remarks: Collection[Remark] = (), is_all: bool = True
) -> tuple[str, str]:
    """Return the kind of a column that is neither numeric nor nominal, and the reason; both empty if it is.

    ``texts`` are its cells that are not numbers; ``is_all`` tells whether there are no others.

    Examples
    --------
    >>> _special_kind(["1,5", "2,25"])[0], _special_kind(["https://a.example/1.png"])[0]
    ('number (1,5)', 'picture')
    >>> _special_kind(["1 2 3.5 4"])[0], _special_kind(["the pump makes a noise"])[0]
    ('series', 'text')
    >>> _special_kind(["img/1.png"])[0], _special_kind(["red", "green"])
    ('leave out', ('', ''))
    """
    if not texts:
        return "", ""
    first = shown(texts[0])
    if written_form(texts) == DECIMAL_COMMA:
        return (
            COMMA,
            f"{first} looks like a number with a decimal comma, and is read as {texts[0].replace(',', '.')}",
        )
    if not is_all:
        return "", ""
    if all(map(_PICTURE.fullmatch, texts)):
        return "picture", "holds addresses of pictures, which labellers see"
    if all(map(_URL.fullmatch, texts)):
        return "link", "holds addresses, which labellers can open"
    if all(map(_is_series, texts)):
        return "series", "holds several numbers in each cell, which labellers see as a curve"
    if all(map(_PATH.fullmatch, texts)):
        why = "a browser cannot send these files; quercus push --beside can, from their folder"
        return LEFT_OUT, f"holds paths of files, such as {first}; {why}"
    is_text = any(each.kind == "text" for each in remarks)
    if is_text or sum(len(text.split()) for text in texts) >= WORDS_OF_TEXT * len(texts):
        return "text", "holds free text, which no tree learns from; labellers see it beside the row"
    return "", ""


def _is_series(cell: str) -> bool:
    words = re.split(r"[\s,;]+", cell.strip(" []"))
    return len(words) >= SERIES_LENGTH and all(finite_number(word) is not None for word in words)


def _likely_class(table: FileTable) -> str | None:
    named = [name for name in table.names if name.casefold() == CLASS]
    return class_column(table, None) or (named[0] if len(named) == 1 else None)


@dataclass(frozen=True)
class ModelPlan:
    """The model to create from a file.

    Attributes
    ----------
    guess
        The file.
    given
        Fields of the form.
    class_column
        Column of the class; None if there is none.
    typed
        The typed names of the classes; empty: those in the column.
    id_column
        Column of the ids; None: rows are numbered.
    labels
        The use of the labels in the file: a key of `LABELS`.
    attributes
        Columns that are attributes although they look like labels.
    """

    guess: FileGuess
    given: Mapping[str, Any]
    class_column: str | None
    typed: str
    id_column: str | None
    labels: str
    attributes: tuple[str, ...]

    @classmethod
    def of(cls, guess: FileGuess, given: Mapping[str, Any] | None) -> ModelPlan:
        """Return the plan of a form; the suggested one for None.

        Raises
        ------
        InvalidInput
            If the form has an unknown column, kind, or choice about labels.
        """
        names = [each.name for each in guess.columns]
        if given is None:
            ids = next((name for name in names if name.lower() == "id"), None)
            return cls(guess, {}, guess.class_column, "", ids, KEEP, ())
        for field in ("class", "id"):
            if given.get(field) and given[field] not in names:
                raise InvalidInput(field, f"is {given[field][:80]!r}, which is not a column of the file")
        for k in range(len(names)):
            kind = given.get(f"kind-{k}", LEFT_OUT)
            if kind not in KINDS:
                raise InvalidInput(f"kind-{k}", f"is {kind[:40]!r}, must be one of {', '.join(KINDS)}")
        labels = given.get("labels") or KEEP
        if labels not in LABELS:
            raise InvalidInput("labels", f"is {labels[:40]!r}, must be one of {', '.join(LABELS)}")
        return cls(
            guess,
            given,
            given.get("class") or None,
            given.get("classes", "").strip(),
            given.get("id") or None,
            labels,
            tuple(given.get("attributes", ())),
        )

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column that is neither class nor id: one of `KINDS`.

        The column of ids is left out.
        """
        found = {}
        for k, each in enumerate(self.guess.columns):
            kind = self.given.get(f"kind-{k}", each.kind)
            found[each.name] = LEFT_OUT if each.name == self.id_column else kind
        return {name: kind for name, kind in found.items() if name != self.class_column}

    @property
    def commas(self) -> frozenset[str]:
        """The columns of numbers with a decimal comma."""
        return frozenset(name for name, kind in self.kinds.items() if kind == COMMA)

    def shown_columns(self) -> tuple[DisplayColumn, ...]:
        """Return the columns that labellers see beside the row."""
        names, kinds = [each.name for each in self.guess.columns], self.kinds
        return tuple(
            DisplayColumn(SHOWN[kind], names.index(name), name)
            for name, kind in kinds.items()
            if kind in SHOWN
        )

    @property
    def frame(self) -> tuple[str, ...]:
        """The classes; empty if not known yet.

        Raises
        ------
        InvalidInput
            If the typed names are invalid.
        """
        if self.typed:
            return typed_classes(self.typed)
        column = self._class_column()
        return () if column is None else column.classes

    @property
    def choices(self) -> dict[str, tuple[str, str, bool]]:
        """The choices about the labels: the words of each, those where no column holds any, and whether it is chosen.

        Where the second words are empty, there is no such choice.
        """
        chosen = KEEP if self.class_column is None and self.labels not in UNLABELLED else self.labels
        return {key: (words, UNLABELLED.get(key, ""), key == chosen) for key, words in LABELS.items()}

    def suspects(self) -> tuple[str, ...]:
        """Return the columns that would become attributes but look like labels."""
        looks = names_classes if self.class_column is None else names_sets
        frame, kinds = self._known_frame(), self.kinds
        return tuple(
            each.name
            for each in self.guess.columns
            if kinds.get(each.name) in ATTRIBUTES
            if each.name.casefold() == CLASS or (frame and looks(each.content, frame))
        )

    def lines(self) -> list[str]:
        """Return the plan for rows, labels and columns, a sentence or two for each."""
        try:
            frame, fault = self.frame, ""
        except InvalidInput as error:
            frame, fault = (), str(error)
        quoted = [f'"{name}"' if "," in name else name for name in frame]
        named = f"Classes ({len(frame)}): {listed_names(quoted)}." if frame else "Classes: type their names."
        return [*self._label_lines(), fault or named, *self._column_lines()]

    def remarks(self) -> list[str]:
        """Return what looks wrong in the columns that are, or would be, attributes by the current choices."""
        kinds, found = self.kinds, list(self.guess.doubts)
        for each in self.guess.columns:
            if each.name not in kinds or each.name == self.id_column:
                continue
            if each.found:
                if kinds[each.name] == each.kind:
                    found.append(f"{each.name}: {each.found}. Choose another kind if that is wrong.")
                continue
            for remark in each.remarks:
                if kinds[each.name] in SHOWN:
                    break
                if kinds[each.name] != LEFT_OUT and remark.kind in each.open_remarks:
                    found.append(f"{remark.sentence}.")
                elif kinds[each.name] == LEFT_OUT == each.kind:
                    found.append(f"{remark.sentence}. The column is left out; choose a kind to include it.")
        return found

    def uncertain(self) -> tuple[str, ...]:
        """Return the nominal columns with cells such as ``a|b``, which are sets unless declared to be names."""
        kinds = self.kinds
        return tuple(
            each.name
            for each in self.guess.columns
            if kinds.get(each.name) == each.kind == "names"
            if any(remark.kind == "set" for remark in each.remarks)
        )

    def _label_lines(self) -> list[str]:
        column, rows = self._class_column(), self.guess.rows
        said = counted(rows, "row")
        if self.labels == NO_ROWS:
            return [f"{said} in the file; the model gets none of them."]
        if column is None:
            return [f"{said}, none of them labelled: no column holds the class."]
        labelled = (
            f"{said}; {column.known:,} labelled in the column {column.name}, {rows - column.known:,} not."
        )
        if not column.known:
            return [labelled]
        if self.labels == HIDE:
            return [labelled, "The labels are NOT sent to the model: labellers are asked about all rows."]
        sets = any(len(set_parts(value)) > 1 for value in column.values - set(self._known_frame()))
        more = " A cell with several classes is a set." if sets else ""
        more += " No row is left to ask about." if column.known == rows else ""
        return [f"{labelled} The labels are kept.{more}"]

    def _column_lines(self) -> list[str]:
        kinds = self.kinds
        groups: list[tuple[str, Sequence[str]]] = [
            ("Numbers", [name for name, kind in kinds.items() if kind in NUMBERS]),
            ("Names", [name for name, kind in kinds.items() if kind == "names"]),
            ("Shown beside the row", [f"{name} ({kind})" for name, kind in kinds.items() if kind in SHOWN]),
            ("Left out", [n for n, kind in kinds.items() if kind == LEFT_OUT and n != self.id_column]),
        ]
        found = [f"{title} ({len(names)}): {listed_names(names)}." for title, names in groups if names]
        ids = "Rows are numbered." if self.id_column is None else f"Ids: the column {self.id_column}."
        return [*found, ids]

    def _known_frame(self) -> tuple[str, ...]:
        """Return the classes; empty if the typed names are invalid."""
        try:
            return self.frame
        except InvalidInput:
            return ()

    def _class_column(self) -> UploadedColumn | None:
        return next((each for each in self.guess.columns if each.name == self.class_column), None)
