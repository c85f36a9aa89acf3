"""The inspection of a file before a model is created from it: the roles of the columns, and remarks.

The inspection uses the statistics of one pass (`quercus.files.seen`) and does not read the file. A column is refused
if a model would silently learn something that was not intended, left out if it cannot help, and otherwise only
remarked on.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from quercus.belief.errors import shown
from quercus.files.cells import is_range, set_in
from quercus.files.errors import NAME_CHARS, FileError
from quercus.files.seen import SeenColumn, SeenTable
from quercus.files.table import FileTable, flag
from quercus.specification.parameters import MAX_VALUES
from quercus.specification.values import NUMBER, Spellings, canonical_text, finite_number, seconds_of
from quercus.specification.written_labels import set_parts

Outcome = Literal["refused", "left out", "said"]
Role = Literal["class", "number", "time", "names", "left out"]

NOT_A_NUMBER: Final = frozenset(
    {"na", "n/a", "nan", "null", "none", "nil", "inf", "-inf", "+inf", "infinity", "-"}
)
"""Words for missing or infinite values that programs write into columns of numbers, in lower case.

Quercus reads an empty cell or ? as a missing value.
"""
DECIMAL_COMMA: Final = "is a number with a decimal comma"
FEW_ROWS: Final = 20
"""Least number of rows for conclusions from the number of different cells."""
NEARLY_ALL: Final = 0.9
"""Share of different names above which they identify rows, and of numbers above which other cells are errors."""
FEW_VALUES: Final = 12
"""Most different numbers in the notation for people (such as 12 %) of a column that may have names of steps."""
REPEATS: Final = 10.0
"""Least number of repetitions expected by chance, to conclude that numbers which hardly repeat number the rows."""
WORDS_OF_TEXT: Final = 5
OFTEN: Final = 5
"""Least average count of values, each with one class only, to conclude that they do not determine it by chance."""
IN_PARTS: Final = "its row goes down every branch that it allows, in parts"
_ID_NAME: Final = re.compile(
    r"(?:(?:^|[\W_])(?:id|ids|uid|uuid|guid|key|ticket|serial|number|no|nr|num|index|idx|row|record|code)|(?-i:[a-z](?:Id|ID|No|Nr|Key)))$",
    re.IGNORECASE,
)
_WHOLE: Final = re.compile(r"[+-]?\d+(\.0+)?", re.ASCII)
_LEADING_ZERO: Final = re.compile(r"0\d+", re.ASCII)
_DAY: Final = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_OTHER_DATE: Final = re.compile(
    r"(?:\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([.-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d{2}(?:\d\d)?|"
    r"\d{1,2}[ -][A-Za-z]{3}[a-z]*[ -]\d{2}(?:\d\d)?|[A-Za-z]{3}[a-z]* \d{1,2},? \d{4})(?:,?[T ]\d{1,2}:\d\d.*)?",
    re.ASCII,
)
_COMMA: Final = re.compile(r"[-+]?\d*,\d+", re.ASCII)
_GROUPED: Final = re.compile(
    r"[-+]?\d{1,3}(?:([., '\u00a0\u202f\u2019])\d{3})(?:\1\d{3})*(?:[.,]\d+)?", re.ASCII
)
_PERCENT: Final = re.compile(rf"(?:{NUMBER.pattern}|[-+]?\d*,\d+)\s*%", re.ASCII)
_UNIT: Final = re.compile(rf"(?:[€$£¥]\s?)?(?:{NUMBER.pattern}|[-+]?\d*,\d+)\s*([^\W\d]{{1,6}}|[€$£¥°]\w?)?")


@dataclass(frozen=True)
class Remark:
    """A remark about a column, or about the file.

    Parameters
    ----------
    kind
        One word: ``ids``, ``date``, ``index``, ...
    column
        Name of the column; empty for the file as a whole.
    says
        The finding, without advice.
    advice
        Advice, with the flags of the commands.
    outcome
        The consequence.
    line
        Line of an example; 0 if there is none.
    error
        The error, if the column or the file is refused.
    """

    kind: str
    column: str
    says: str
    advice: str = ""
    outcome: Outcome = "said"
    line: int = 0
    error: FileError | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """Place and finding, without advice."""
        where = self.column + (f", line {self.line}" if self.column and self.line else "")
        return f"{where}: {self.says}" if where else self.says

    def __str__(self) -> str:
        return self.sentence + (f"; {self.advice}" if self.advice else "")


class RemarkError(FileError):
    """A refusal with its `remark`, in which finding and advice are separate."""

    def __init__(self, table: FileTable, position: int, remark: Remark) -> None:
        reason = remark.says + (f"; {remark.advice}" if remark.advice else "")
        super().__init__(table.path, reason, remark.line, position + 1 + table.skipped, remark.column)
        self.remark = remark


@dataclass(frozen=True)
class Choices:
    """The choices of the user about the columns.

    Parameters
    ----------
    class_column
        The column of the class; None if there is none.
    ignore, nominal, numeric, attributes
        Columns to leave out; columns of names, whatever they look like; columns of numbers or times; columns to keep.
    """

    class_column: str | None = None
    ignore: Collection[str] = ()
    nominal: Collection[str] = ()
    numeric: Collection[str] = ()
    attributes: Collection[str] = ()


@dataclass(frozen=True)
class InspectedColumn:
    """An inspected column: its role, and the remarks about it."""

    seen: SeenColumn
    role: Role
    remarks: tuple[Remark, ...] = ()

    @property
    def is_attribute(self) -> bool:
        """True if a model learns from it."""
        return self.role in ("number", "time", "names")


def inspect_columns(seen: SeenTable, choices: Choices) -> tuple[InspectedColumn, ...]:
    """Return each column with its role and the remarks about it."""
    return tuple(_ColumnJudge(seen, column, choices).inspect() for column in seen.columns)


def inspect_rows(seen: SeenTable) -> tuple[Remark, ...]:
    """Return the remark about rows with a fault, if there are any; if they are the majority, the file is refused."""
    first = seen.first_fault
    if first is None:
        return ()
    others = "1 more row is" if seen.faults == 2 else f"{seen.faults - 1:,} more rows are"
    more = f", and {others} wrong" if seen.faults > 1 else ""
    says = f"{first.place}: {first.reason}{more}"
    if seen.faults > seen.rows:
        return (Remark("rows", "", says, "", "refused", first.line, first),)
    advice = f"{flag('--rejected', 'FILE')} (quercus push) keeps such rows apart, and takes the others"
    return (Remark("rows", "", says, advice, "said", first.line),)


def no_number(table: FileTable, cell: str) -> str:
    """Return the fault of a cell in a column of numbers, with advice."""
    return f"{shown(cell)} is not a finite number; {_missing_advice(table, cell)}"


def _missing_advice(table: FileTable, cell: str) -> str:
    advice = f"{table.missing_mark} is a missing value"
    return (
        advice if len(cell) > NAME_CHARS else f"{advice}, and {cell!r} is one with {flag('--missing', cell)}"
    )


class _ColumnJudge:
    """The judgement of one column."""

    def __init__(self, seen: SeenTable, column: SeenColumn, choices: Choices) -> None:
        self._table, self._rows = seen.table, seen.rows
        self._seen, self._name, self._choices = column, column.name, choices
        self._twin = seen.same.get(column.name)
        self._gives_class_away = column.name in seen.telling
        self._remarks: list[Remark] = []
        self._chosen = column.name in {*choices.nominal, *choices.numeric}
        self._kept = self._chosen or column.name in choices.attributes

    def inspect(self) -> InspectedColumn:
        """Return role and remarks."""
        if self._name == self._choices.class_column:
            role: Role = "class"
            self._note_spellings()
        elif self._name in self._choices.ignore:
            role = "left out"
        else:
            role = self._judge()
            if role != "left out" and not any(each.outcome == "refused" for each in self._remarks):
                self._note_what_helps_little()
        return InspectedColumn(self._seen, role, tuple(self._remarks))

    def _judge(self) -> Role:
        seen = self._seen
        if seen.column.fault is not None:
            self._remarks.append(
                Remark("type", self._name, seen.column.fault.reason, "", "refused", 0, seen.column.fault)
            )
            return "left out"
        if self._name in self._choices.numeric:
            for text in seen.texts:
                if seconds_of(text) is None:
                    what = f"{shown(text)} is neither a finite number nor a time such as 2026-01-31T12:00:00Z"
                    self._refuse("number", what, _missing_advice(self._table, text), text)
                    break
            return "time" if seen.texts else "number"
        if self._name in self._choices.nominal:
            if not self._refuse_sets():
                self._note_spellings()
            return "names"
        if seen.column.is_index and not self._kept:
            self._leave_out(
                "index",
                "is the index of a table of pandas",
                f"the rows can be known by it: {flag('--id-column', self._name)} (quercus push)",
            )
            return "left out"
        if not seen.known and not seen.column.values and seen.column.kind != "numeric":
            if self._kept:
                self._refuse("empty", "has no value at all", f"leave it out with {self._ignore}")
            else:
                self._remarks.append(Remark("empty", self._name, "has no value at all", "", "left out"))
            return "left out"
        if seen.column.kind == "nominal":
            if not seen.column.values and self._refuse_sets():
                return "names"
            if self._leave_out_text():
                return "left out"
            self._note_spellings()
            return "names"
        if seen.column.kind == "time":
            self._refuse_times(next(iter(seen.texts), ""), seen.known)
            return "time"
        if not seen.texts:
            return self._numbers()
        return self._texts()

    def _numbers(self) -> Role:
        seen = self._seen
        distinct, cells = len(seen.numbers), seen.sampled
        whole = all(_WHOLE.fullmatch(cell) is not None for cell in seen.numbers)
        values = [float(cell) for cell in seen.numbers]
        rising = distinct == cells and all(a < b for a, b in itertools.pairwise(values))
        if cells >= FEW_ROWS and not self._kept:
            what = f"{distinct:,} different whole numbers in {cells:,} rows"
            if whole and rising:
                self._leave_out("ids", f"{what}, rising from row to row, number the rows or tell the time")
                return "left out"
            if whole and self._is_drawn_without_repeats(values, cells):
                self._leave_out(
                    "ids", f"{what}, from {min(values):.0f} to {max(values):.0f}, number the rows"
                )
                return "left out"
            if whole and distinct >= 0.95 * cells and _ID_NAME.search(self._name):
                self._leave_out("ids", f"{what}, and the name of the column, tell rows apart")
                return "left out"
            if whole and distinct >= 0.95 * cells:
                self._note("ids", what, f"if they number things, leave the column out with {self._ignore}")
            elif rising:
                advice = f"if it tells the time, or numbers the rows, leave it out with {self._ignore}"
                self._note("ids", "rises from row to row", advice)
        coded = next((cell for cell in seen.numbers if _LEADING_ZERO.fullmatch(cell)), None)
        if coded is not None and whole and not self._kept:
            advice = f"if it is a code, take the column as names with {self._nominal}"
            self._note("codes", f"{shown(coded)} begins with a zero", advice, coded)
        elif seen.column.is_text and seen.known and not self._kept:
            advice = f"take the column as names with {self._nominal}"
            self._note("codes", "is text in the file, and read as numbers, because all of it is", advice)
        elif whole and not self._kept and distinct > 1 and all(map(_DAY.fullmatch, seen.numbers)):
            first = next(iter(seen.numbers))
            what = f"{shown(first)} and all others look like days that are written YYYYMMDD"
            self._note("date", what, f"leave them out with {self._ignore}", first)
        return "number"

    @staticmethod
    def _is_drawn_without_repeats(values: Sequence[float], cells: int) -> bool:
        """Return whether numbers repeat far less often than random numbers in their range would.

        Of n numbers drawn from r equally likely ones, n - r(1 - exp(-n/r)) are expected to be repetitions, and more if
        they are not equally likely.
        """
        width = max(values) - min(values) + 1.0
        expected = cells + width * math.expm1(-cells / width)
        repeated = cells - len(values)
        return expected >= REPEATS and repeated * REPEATS <= expected and repeated <= 0.05 * cells

    def _texts(self) -> Role:
        seen = self._seen
        texts, numbers = seen.texts, seen.known - seen.text_cells
        first = next(iter(texts))
        words = [text for text in texts if text.lower() in NOT_A_NUMBER]
        if seen.column.kind == "numeric":
            self._refuse(
                "number", f"{shown(first)} is not a finite number", _missing_advice(self._table, first), first
            )
            return "number"
        ranges = [text for text in texts if is_range(text)]
        if seen.numbers and ranges and self._name not in self._choices.attributes:
            if len(ranges) == len(texts):
                self._note("range", f"{shown(ranges[0])} is a range: {IN_PARTS}", "", ranges[0])
                return "number"
            other = next(text for text in texts if not is_range(text))
            reason = f"{shown(other)} is neither a number nor a range, and {shown(ranges[0])} is a range"
            self._refuse(
                "uncertain", reason, f"{_missing_advice(self._table, other)}; {self._as_names}", other
            )
            return "names"
        if self._refuse_sets():
            return "names"
        if numbers and len(words) == len(texts):
            advice = f"{_missing_advice(self._table, first)}; take the column as names with {self._nominal}"
            self._refuse("number", f"{shown(first)} is not a finite number", advice, first)
            return "number"
        if numbers >= NEARLY_ALL * seen.known:
            mend = "correct it"
            if len(first) <= NAME_CHARS:
                mend += f", or say that it means a missing value with {flag('--missing', first)}"
            self._refuse(
                "number",
                f"{shown(first)} is not a finite number, and {numbers:,} other cells are",
                f"{mend}, or take the column as names with {self._nominal}",
                first,
            )
            return "number"
        if self._refuse_dates() or self._judge_written():
            if not any(each.outcome == "refused" for each in self._remarks):
                self._note_spellings()
            return "names"
        if self._leave_out_text():
            return "left out"
        if numbers >= seen.text_cells:
            what = f"{numbers:,} cells are numbers, and {seen.text_cells:,} are not, as {shown(first)}: all are names"
            self._note("mixed", what, "", first)
        self._note_spellings()
        return "names"

    def _refuse_sets(self) -> bool:
        """Refuse sets of numbers, and return whether they were refused; remark on cells that are sets of names."""
        seen = self._seen
        if self._name in self._choices.attributes or not any("|" in text for text in seen.texts):
            return False
        names = {canonical_text(value) for value in seen.values if "|" not in value}
        joined = {text: set_parts(text) for text in seen.texts if "|" in text}
        spellings = Spellings(names)
        for text, parts in joined.items():
            are_numbers = all(finite_number(part.strip()) is not None for part in parts)
            if seen.numbers and are_numbers and not self._chosen:
                reason = f"{shown(text)} is one of several numbers"
                self._refuse(
                    "uncertain", reason, f"write a range, as 2..9, or one of them; {self._as_names}", text
                )
                return True
        for text in joined:
            if isinstance(set_in(text, spellings), frozenset):
                self._note("set", f"{shown(text)} is one of several values: {IN_PARTS}", "", text)
                return False
        for text, parts in joined.items():
            if not names.isdisjoint(map(canonical_text, parts)):
                reason = f"{shown(text)} is a name of its own, and not one of several values"
                self._note("uncertain", reason, "", text)
                break
        return False

    def _refuse_dates(self) -> bool:
        texts = self._seen.texts
        for is_date, readable in ((seconds_of, True), (_OTHER_DATE.fullmatch, False)):
            dates = [text for text in texts if text[:1].isalnum() and is_date(text) is not None]
            if dates and len(dates) >= NEARLY_ALL * len(self._seen.values):
                self._refuse_times(dates[0], len(dates), readable=readable)
                return True
        return False

    def _refuse_times(self, example: str, count: int, *, readable: bool = True) -> None:
        names = f"; as names with {self._nominal}" if count <= MAX_VALUES else ""
        numeric = flag("--numeric", self._name)
        advice = (
            f"take the column as numbers, seconds since 1970 UTC, with {numeric}"
            if readable
            else f"write it as 2026-01-31 or 2026-01-31T12:00:00Z for {numeric}"
        )
        what = f"{shown(example)} is a date or a time, which is neither a number nor a name"
        self._refuse("date", what, f"{advice}, or leave it out with {self._ignore}{names}", example)

    def _judge_written(self) -> bool:
        """Refuse numbers in a notation for people, unless there are few, which may be names of steps."""
        seen = self._seen
        what = written_form(seen.texts)
        if what is None:
            return False
        first = next(iter(seen.texts))
        said = f"{shown(first)} {what}, and so are all cells that are not numbers"
        if len(seen.values) <= FEW_VALUES:
            why = "a number has a decimal point (1.5 and not 1,5) and nothing beside"
            self._note("written", f"{said}: they are names, not numbers, because {why}", "", first)
            return True
        self._refuse(
            "written", f"{said}, and would be names",
            f"write numbers as 1234.5, or leave the column out with {self._ignore}, or take it as names with "
            f"{self._nominal}", first,
        )  # fmt: skip
        return True

    def _leave_out_text(self) -> bool:
        """Leave out names if nearly all differ, and free text; return whether the column was left out."""
        seen = self._seen
        distinct, cells = len(seen.values), seen.sampled
        if cells < FEW_ROWS or self._kept:
            return False
        words = sum(len(text.split()) for text in seen.values) / distinct
        is_text = words >= WORDS_OF_TEXT
        what = f"{distinct:,} different {'texts' if is_text else 'values'} in {cells:,} rows"
        if is_text and distinct >= cells / 2:
            beside = f"labellers see it beside the row with {flag('--beside', f'text:{self._name}')} (quercus push)"
            self._leave_out("text", f"{what}: free text, of which no tree learns", beside)
            return True
        if distinct >= NEARLY_ALL * cells:
            ids = f"the rows can be known by it: {flag('--id-column', self._name)} (quercus push)"
            says = f"{what} tell rows apart, and say nothing about other rows"
            self._leave_out("ids", says, ids if distinct == cells else "")
            return True
        if distinct >= cells / 2:
            what += ": most come once or twice, and teach little"
            self._note("values", what, f"leave the column out with {self._ignore}")
        return False

    def _note_spellings(self) -> None:
        """Remark on values that differ only in case or in white space."""
        alike: dict[str, dict[str, str]] = {}
        for value in self._seen.values:
            name = canonical_text(value)
            alike.setdefault("".join(name.casefold().split()), {}).setdefault(name, value)
        pairs = [names for names in alike.values() if len(names) > 1]
        if len(alike) <= 2 and all(key in ("true", "false") for key in alike):
            return
        for names in pairs[:3]:
            listed = ", ".join(map(repr, names))
            last = [*names.values()][-1]
            what = f"{listed} differ only in case or spaces, and are different values"
            self._note("spelling", what, "if they mean one, correct the file", last)
        if len(pairs) > 3:
            self._note("spelling", f"{len(pairs) - 3:,} more values have such doubles")

    def _note_what_helps_little(self) -> None:
        seen, rows = self._seen, self._rows
        if rows < FEW_ROWS or self._kept:
            return
        leave = f"leave it out with {self._ignore}"
        if seen.known and len(seen.values) == 1 and not seen.at_full:
            self._note("constant", f"is {shown(seen.values[0])} in every row that has a value", leave)
        elif self._gives_class_away and len(seen.values) * OFTEN <= seen.known:
            says = "tells the class alone: each of its values comes with one class only"
            self._note("labels", says, f"if it is not known before the class is, {leave}")
        elif self._twin is not None:
            self._note("same", f"is the same as {self._twin} in every row", leave)
        if seen.known * 20 <= rows:
            self._note("missing", f"has a value in {seen.known:,} of {rows:,} rows", leave)

    @property
    def _as_names(self) -> str:
        return f"if they are names, say so with {flag('--attribute', self._name)}"

    @property
    def _ignore(self) -> str:
        return flag("--ignore", self._name)

    @property
    def _nominal(self) -> str:
        return flag("--nominal", self._name)

    def _note(self, kind: str, says: str, advice: str = "", cell: str | None = None) -> None:
        line = 0 if cell is None else self._seen.line_of(cell)
        self._remarks.append(Remark(kind, self._name, says, advice, "said", line))

    def _leave_out(self, kind: str, says: str, more: str = "") -> None:
        advice = f"take it with {flag('--attribute', self._name)}" + (f"; {more}" if more else "")
        self._remarks.append(Remark(kind, self._name, says, advice, "left out"))

    def _refuse(self, kind: str, says: str, advice: str, cell: str | None = None) -> None:
        line = 0 if not cell else self._seen.line_of(cell)
        remark = Remark(kind, self._name, says, advice, "refused", line)
        error = RemarkError(self._table, self._seen.position, remark)
        self._remarks.append(Remark(kind, self._name, says, advice, "refused", line, error))


def written_form(texts: Iterable[str]) -> str | None:
    """Return the notation of texts that are all numbers in a notation for people; None if some are not.

    Examples
    --------
    >>> written_form(["3,5", "0,25"]), written_form(["12 %", "7%"])
    ('is a number with a decimal comma', 'is a percentage')
    >>> written_form(["1,234", "1,234,567.5"]), written_form(["12 kg", "7 kg"]), written_form(["1st", "2nd"])
    ('is a number with signs between the thousands', 'is a number with a unit', None)
    """
    texts = list(texts)
    if all(_GROUPED.fullmatch(text) or _COMMA.fullmatch(text) for text in texts):
        grouped = all(_GROUPED.fullmatch(text) for text in texts)
        return "is a number with signs between the thousands" if grouped else DECIMAL_COMMA
    if all(_PERCENT.fullmatch(text) for text in texts):
        return "is a percentage"
    units = [_UNIT.fullmatch(text) for text in texts]
    if all(units) and len({found[len(found.groups())] for found in units if found is not None}) == 1:
        return "is a number with a unit"
    return None
