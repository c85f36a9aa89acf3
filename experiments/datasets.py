"""The data: scikit-learn's own, one that a rule makes, and any folder of CSV or ARFF files."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.files import FileError, open_table, read
from quercus.files.leaks import LeakError
from quercus.specification.attributes import Attribute, Numeric

SUFFIXES = (".csv", ".csv.gz", ".arff", ".arff.gz")
KINDS = ("numeric", "nominal", "id")
COMPANION_ENDINGS = ("_masses", "_answers")  # endings of files that belong to a data set and are none


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows whose true class is known.

    Parameters
    ----------
    name
        Name of the data set.
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


def set_name(path: Path) -> str:
    """Return the name of the data set in a file.

    Examples
    --------
    >>> set_name(Path("data/mushroom.csv.gz"))
    'mushroom'
    """
    return path.name.split(".")[0]


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files of data sets in a folder, by the sets' names, in order of name."""
    files = sorted(path for path in folder.iterdir() if path.name.lower().endswith(SUFFIXES))
    return {set_name(path): path for path in files if not set_name(path).endswith(COMPANION_ENDINGS)}


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
    quercus.files.FileError
        When a file cannot be used.
    """
    files = files_in(folder)
    for name in names or ():
        if name not in files:
            raise InvalidInput("sets", f"has no {name!r}; {folder} holds {', '.join(files) or 'no data'}")
    known = {} if kinds is None else _read_kinds(kinds)
    wanted = [files[name] for name in names or files]
    if not wanted:
        raise InvalidInput("data", f"{folder} holds no file that ends in {', '.join(SUFFIXES)}")
    found = []
    for path in wanted:
        beside = (path.with_name(set_name(path) + "_masses" + suffix) for suffix in SUFFIXES)
        masses = next((file for file in beside if file.exists()), None)
        found.append(read_set(path, known.get(path.name, {}), class_name, masses))
    return found


def read_set(
    path: Path, kinds: Mapping[str, str], class_name: str | None = None, masses: Path | None = None
) -> DataSet:
    """Return the data set in a file; see `in_folder`.

    Parameters
    ----------
    path
        The file.
    kinds
        Kinds of its columns.
    class_name
        The column that holds the class; default ``class``, else the last.
    masses
        The file of the labels that come with it.
    """
    names = open_table(path).names
    column = class_name or ("class" if "class" in names else names[-1])
    try:
        found = read(
            path,
            class_name=column,
            label_file=masses,
            ignore=[name for name in names if kinds.get(name) == "id" and name != column],
            nominal=[name for name in names if kinds.get(name) == "nominal" and name != column],
            numeric=[name for name in names if kinds.get(name) == "numeric" and name != column],
            attributes=[name for name in names if kinds.get(name) in ("numeric", "nominal")],
        )
    except LeakError as error:
        error.add_note(
            "here --kinds says it: kind id leaves a column out, numeric or nominal makes it an attribute"
        )
        raise
    index = {name: c for c, name in enumerate(found.classes)}
    for row, klass in enumerate(found.truth or ()):
        if not isinstance(klass, str):
            raise FileError(path, f"row {row + 1} of the data has no class, or several")
    targets = np.array([index[str(klass)] for klass in found.truth or ()], dtype=np.int64)
    given: list[MassFunction] = []
    for label in () if masses is None else found.labels or ():
        if not isinstance(label, dict):
            raise FileError(
                masses or path, "holds no mass functions: a column must be a focal set, such as A|B", 1
            )
        sets = {sum(1 << index[name] for name in names): float(mass) for names, mass in label.items()}
        given.append(MassFunction.of(len(index), sets))
    labels = None if masses is None else tuple(given)
    if found.parts:
        row, k = min(found.parts)
        what = "has an uncertain value, a set or a range, which experiments do not take"
        raise FileError(found.path, f"row {row + 1}, {found.attributes[k].name}: {what}")
    return DataSet(set_name(path), found.values, found.whole_attributes, found.classes, targets, labels)


def _read_kinds(path: Path) -> dict[str, dict[str, str]]:
    try:
        kinds: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileError(path, f"is not JSON: {error}") from None
    good = isinstance(kinds, dict) and all(isinstance(columns, dict) for columns in kinds.values())
    if not good:
        raise FileError(path, 'must hold {"FILE": {"COLUMN": KIND}}')
    for file, columns in kinds.items():
        for column, kind in columns.items():
            if kind not in KINDS:
                raise FileError(
                    path, f"{file}, {column}: {kind!r} is not a kind; they are {', '.join(KINDS)}"
                )
    return dict(kinds)
