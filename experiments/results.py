"""The results file: a line a measurement, appended cell by cell, so an interrupted run leaves a valid file."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from quercus.client.durable import replace_durably
from quercus.files import FileError

RESULTS = "results.csv"
SETTINGS = "settings.json"


@dataclass(frozen=True, order=True)
class MeasurementKey:
    """The key of a measurement.

    Parameters
    ----------
    data, method
        Names of data set and method.
    sweep
        What is varied: V, I, U, N (theory §8), given (labels that came with the data), queries or examples.
    level
        Level of the variation.
    repeat, fold
        Counted from 0.
    """

    data: str
    method: str
    sweep: str
    level: float
    repeat: int
    fold: int


@dataclass(frozen=True)
class Measurement:
    """A measurement.

    Parameters
    ----------
    train_rows, test_rows
        Numbers of rows.
    accuracy
        Share of rows whose class is the one predicted.
    u65, u80
        Utility-discounted accuracy of the set-valued prediction.
    brier
        Mean squared distance of the probabilities from the true class, in [0, 2].
    nodes
        Number of nodes of the tree, or of all trees of a forest.
    fit_s
        CPU seconds of learning; the one column that is not the same when a run is repeated.
    """

    key: MeasurementKey
    train_rows: int
    test_rows: int
    accuracy: float
    u65: float
    u80: float
    brier: float
    nodes: int
    fit_s: float


@dataclass(frozen=True)
class ExperimentJob:
    """A piece of work: one method on one fold, measured at one level or, for a curve, at several.

    Parameters
    ----------
    data, method, sweep, repeat, fold
        See `MeasurementKey`.
    levels
        Levels to measure, increasing.
    """

    data: str
    method: str
    sweep: str
    levels: tuple[float, ...]
    repeat: int
    fold: int

    def key(self, level: float) -> MeasurementKey:
        """Return the key of the measurement at a level."""
        return MeasurementKey(self.data, self.method, self.sweep, level, self.repeat, self.fold)

    @property
    def keys(self) -> list[MeasurementKey]:
        """The measures of the job."""
        return [self.key(level) for level in self.levels]


KEYS = tuple(field.name for field in fields(MeasurementKey))
MEASURES = tuple(field.name for field in fields(Measurement))[1:]
COLUMNS = (*KEYS, *MEASURES)
_KINDS: Mapping[str, type[str] | type[int]] = {
    **dict.fromkeys(("data", "method", "sweep"), str),
    **dict.fromkeys(("repeat", "fold", "train_rows", "test_rows", "nodes"), int),
}
"""Columns that are not numbers with a point."""


class Results:
    """The results file of a folder, and its measurements; a context manager that leaves the file sorted.

    Parameters
    ----------
    folder
        Made if it is not there.

    Raises
    ------
    quercus.files.FileError
        When there is a file of that name that holds something else.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / RESULTS
        self.rows = {row.key: row for row in read_rows(self.path)} if self.path.exists() else {}
        self._write_all()

    def missing_cells(self, cells: Iterable[ExperimentJob]) -> list[ExperimentJob]:
        """Return the cells without a measurement."""
        return [cell for cell in cells if any(key not in self.rows for key in cell.keys)]

    def append_measurements(self, rows: Sequence[Measurement]) -> None:
        """Append the measurements of a cell in one write."""
        self.rows.update((row.key, row) for row in rows)
        with self.path.open("a", encoding="utf-8", newline="") as stream:
            stream.write(_csv_lines(rows))

    def _write_all(self) -> None:
        """Write the file anew, sorted, a measurement once; the old one is there until the new one is whole."""
        fresh = self.path.with_suffix(".csv.new")
        ordered = (self.rows[key] for key in sorted(self.rows))
        fresh.write_text(",".join(COLUMNS) + "\n" + _csv_lines(ordered), encoding="utf-8", newline="")
        replace_durably(fresh, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write_all()


def _csv_lines(rows: Iterable[Measurement]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in rows:
        cells = asdict(row.key) | {name: getattr(row, name) for name in MEASURES}
        writer.writerow(
            [f"{v:.6f}" if isinstance(v, float) and n != "level" else v for n, v in cells.items()]
        )
    return stream.getvalue()


def read_rows(path: Path) -> Iterator[Measurement]:
    """Return the measurements in a results file; a last line that was cut off in the writing is left out.

    Raises
    ------
    quercus.files.FileError
        When it is not a results file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    whole = text[: text.rfind("\n") + 1]
    reader = csv.reader(io.StringIO(whole))
    if tuple(next(reader, ())) != COLUMNS:
        raise FileError(path, f"is not a results file: its first line must be {','.join(COLUMNS)}", 1)
    for cells in reader:
        try:
            named: dict[str, Any] = {
                name: _KINDS.get(name, float)(cell) for name, cell in zip(COLUMNS, cells, strict=True)
            }
        except ValueError as error:
            raise FileError(path, f"is not a measurement: {error}", reader.line_num) from None
        key = MeasurementKey(**{name: named.pop(name) for name in KEYS})
        yield Measurement(key, **named)


def agree_on(folder: Path, settings: Mapping[str, Any], prints: Mapping[str, str]) -> None:
    """Write the settings of the results in a folder, or compare with the written ones.

    Parameters
    ----------
    folder
        Folder of the results.
    settings
        Name and value of everything that a cell's results depend on, beside its name.
    prints
        Fingerprint of each data set.

    Raises
    ------
    quercus.files.FileError
        When the results there were made with other settings or other data.
    """
    path = folder / SETTINGS
    known: dict[str, Any] = {"settings": dict(settings), "data": {}}
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            before, data = dict(known["settings"]), dict(known["data"])
        except (ValueError, KeyError, TypeError):
            raise FileError(path, "is not what this command writes; give another --output") from None
        for name, value in settings.items():
            if before.get(name) != value:
                flag = name.replace("_", "-")
                reason = f"the results there were made with {flag} {before.get(name)}, not {value}"
                raise FileError(path, f"{reason}; give another --output, or the same {flag}")
        for name, value in prints.items():
            if data.get(name, value) != value:
                raise FileError(path, f"the data set {name} was a different one; give another --output")
    elif (folder / RESULTS).exists():
        raise FileError(path, f"is missing beside {RESULTS}; give another --output")
    folder.mkdir(parents=True, exist_ok=True)
    known["data"] = dict(sorted({**known["data"], **prints}.items()))
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
