"""The data: scikit-learn's own, one that a rule makes, and any folder of CSV or ARFF files."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.client import results
from quercus.client.files import FileError, Table, open_table
from quercus.client.files.schema import Binding, class_of, infer
from quercus.trees.specification import Attribute, Nominal, Numeric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SUFFIXES = (".csv", ".csv.gz", ".arff", ".arff.gz")
KINDS = ("numeric", "nominal", "id")
BESIDE = ("_masses", "_answers")  # endings of files that belong to a data set and are none


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows whose true class is known.

    Parameters
    ----------
    name
        Of the set.
    values
        (n, K) numbers, indices of nominal values, NaN for missing.
    attributes
        Their declarations.
    classes
        Names of the classes.
    targets
        (n,) true classes.
    masses
        Labels that came with the data, one a row; None: there are none but the true classes.
    """

    name: str
    values: Floats
    attributes: tuple[Attribute, ...]
    classes: tuple[str, ...]
    targets: Ints
    masses: tuple[MassFunction, ...] | None = None

    def __len__(self) -> int:
        return len(self.targets)


def _of_sklearn(name: str) -> DataSet:
    from sklearn import datasets  # noqa: PLC0415  (takes a second, and only some commands need it)

    bunch: Any = getattr(datasets, f"load_{name}")()
    attributes = tuple(Numeric(str(feature)) for feature in bunch.feature_names)
    classes = tuple(str(target) for target in bunch.target_names)
    return DataSet(
        name, np.asarray(bunch.data, dtype=float), attributes, classes, bunch.target.astype(np.int64)
    )


def balance_scale() -> DataSet:
    """Return the balance scale data: weights and distances 1 to 5, to which side the scale tips.

    Examples
    --------
    >>> np.bincount(balance_scale().targets).tolist()
    [288, 49, 288]
    """
    values = np.array(list(itertools.product(range(1, 6), repeat=4)), dtype=float)
    names = ("left_weight", "left_distance", "right_weight", "right_distance")
    tips = np.sign(values[:, 2] * values[:, 3] - values[:, 0] * values[:, 1]).astype(np.int64)
    return DataSet("balance_scale", values, tuple(map(Numeric, names)), ("L", "B", "R"), tips + 1)


BUILT_IN: Mapping[str, Callable[[], DataSet]] = MappingProxyType(
    {
        "iris": lambda: _of_sklearn("iris"),
        "wine": lambda: _of_sklearn("wine"),
        "breast_cancer": lambda: _of_sklearn("breast_cancer"),
        "balance_scale": balance_scale,
        "digits": lambda: _of_sklearn("digits"),
    }
)
"""Data sets that need no file, by name."""
DEFAULT = ("iris", "wine", "breast_cancer", "balance_scale")


def built_in(names: Sequence[str]) -> list[DataSet]:
    """Return data sets by name.

    Raises
    ------
    InvalidInput
        When there is none of that name.
    """
    for name in names:
        if name not in BUILT_IN:
            reason = f"has no {name!r}; without --data there are {', '.join(BUILT_IN)}"
            raise InvalidInput("sets", reason)
    return [BUILT_IN[name]() for name in names]


def stem(path: Path) -> str:
    """Return the name of the data set in a file.

    Examples
    --------
    >>> stem(Path("data/mushroom.csv.gz"))
    'mushroom'
    """
    return path.name.split(".")[0]


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files of data sets in a folder, by the sets' names, in order of name."""
    files = sorted(path for path in folder.iterdir() if path.name.lower().endswith(SUFFIXES))
    return {stem(path): path for path in files if not stem(path).endswith(BESIDE)}


def in_folder(
    folder: Path, names: Sequence[str] | None, kinds: Path | None, class_name: str | None = None
) -> list[DataSet]:
    """Return the data sets in a folder of CSV and ARFF files.

    Parameters
    ----------
    folder
        Holds a file a set, and maybe ``NAME_masses.csv``: a column a focal set (``A|B``), a mass function a row.
    names
        Of the sets wanted, without the files' endings; None: all.
    kinds
        A JSON file: for each file's name, the kind of each column: numeric, nominal or id (no attribute). Files that
        it does not name are read without it.
    class_name
        The column that holds the class; default ``class``, else the last.

    Raises
    ------
    InvalidInput
        When there is no set of that name.
    quercus.client.files.FileError
        When a file cannot be used.
    """
    files = files_in(folder)
    for name in names or ():
        if name not in files:
            raise InvalidInput("sets", f"has no {name!r}; {folder} holds {', '.join(files) or 'no data'}")
    known = {} if kinds is None else _kinds(kinds)
    wanted = [files[name] for name in names or files]
    if not wanted:
        raise InvalidInput("data", f"{folder} holds no file that ends in {', '.join(SUFFIXES)}")
    return [read(path, known.get(path.name, {}), class_name) for path in wanted]


def read(path: Path, kinds: Mapping[str, str], class_name: str | None = None) -> DataSet:
    """Return the data set in a file; see `in_folder`."""
    table = open_table(path)
    column = class_name or ("class" if "class" in table.names else table.names[-1])
    schema = infer(
        table,
        class_column=column,
        ignore=[name for name in table.names if kinds.get(name) == "id" and name != column],
        nominal=[name for name in table.names if kinds.get(name) == "nominal" and name != column],
    )
    targets, at = [], table.position(column, "--class")
    for record in table:
        name = class_of(table, record, at, schema.classes)
        if name is None:
            raise table.error(record, at, "the class is missing")
        targets.append(schema.classes.index(name))
    values = _values(table, schema.attributes, schema.classes)
    attributes = tuple(_declared(attribute) for attribute in schema.attributes)
    return DataSet(stem(path), values, attributes, schema.classes, np.array(targets, dtype=np.int64))


def _values(table: Table, attributes: Sequence[results.Attribute], classes: tuple[str, ...]) -> Floats:
    indices = [
        {value: float(index) for index, value in enumerate(attribute.values)}
        if isinstance(attribute, results.Nominal)
        else None
        for attribute in attributes
    ]

    def code(k: int, cell: str | float | None) -> float:
        known = indices[k]
        if cell is None:
            return float("nan")
        return float(cell) if known is None else known[str(cell)]

    rows = Binding(table, results.Specification(tuple(attributes), classes))
    return np.array([[code(k, cell) for k, cell in enumerate(row)] for row in rows])


def _declared(attribute: results.Attribute) -> Attribute:
    if isinstance(attribute, results.Nominal):
        return Nominal(attribute.name, tuple(attribute.values))
    return Numeric(attribute.name)


def _kinds(path: Path) -> dict[str, dict[str, str]]:
    try:
        kinds: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileError(path, f"is no JSON: {error}") from None
    good = isinstance(kinds, dict) and all(isinstance(columns, dict) for columns in kinds.values())
    if not good:
        raise FileError(path, 'must hold {"FILE": {"COLUMN": KIND}}')
    for file, columns in kinds.items():
        for column, kind in columns.items():
            if kind not in KINDS:
                raise FileError(path, f"{file}, {column}: {kind!r} is no kind; they are {', '.join(KINDS)}")
    return dict(kinds)
