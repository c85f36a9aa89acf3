"""Real data: the folder ``../shared/data`` beside the checkout, or the one that BENCH_DATA names.

``KINDS.json`` there names the nominal columns. A missing set is not measured, and gets no row.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from _report import HERE, Report

from quercus.experiments.datasets import DataSet, files_in, in_folder, read_set
from quercus.specification.attributes import Nominal

FOLDER = Path(os.environ.get("BENCH_DATA") or HERE.parents[1] / "shared" / "data")
KINDS = FOLDER / "KINDS.json"
NUMBERS = {"airlines_5pct": {"Flight": "numeric"}}  # as a name, a flight's number has 5,857 values


def real_sets(report: Report, names: Sequence[str]) -> Iterator[DataSet]:
    """Yield the data sets that exist; the report lists the others."""
    files = files_in(FOLDER) if FOLDER.is_dir() else {}
    for name in names:
        if name in files:
            yield read_real(FOLDER, name, KINDS)
        else:
            report.skip(name, f"{FOLDER} does not hold it; name the folder in BENCH_DATA")


def read_real(folder: Path, name: str, kinds: Path) -> DataSet:
    """Return a data set of a folder, with its masses."""
    if name not in NUMBERS:
        return in_folder(folder, [name], kinds)[0]
    file = files_in(folder)[name]
    return read_set(file, json.loads(kinds.read_text(encoding="utf-8"))[file.name] | NUMBERS[name])


def is_nominal(data: DataSet) -> np.ndarray:
    """Return whether each attribute is nominal, (K,)."""
    return np.array([isinstance(attribute, Nominal) for attribute in data.attributes])
