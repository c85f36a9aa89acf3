"""Will they wait for a table? Examples by the rule of a textbook's tree (Russell and Norvig; theory §7)."""

import numpy as np

from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Nominal

YES_NO = ("No", "Yes")
ATTRIBUTES = (
    Nominal("Alternate", YES_NO),
    Nominal("Bar", YES_NO),
    Nominal("Fri/Sat", YES_NO),
    Nominal("Hungry", YES_NO),
    Nominal("Patrons", ("None", "Some", "Full")),
    Nominal("Price", ("$", "$$", "$$$")),
    Nominal("Raining", YES_NO),
    Nominal("Reservation", YES_NO),
    Nominal("Type", ("French", "Italian", "Thai", "Burger")),
    Nominal("WaitEstimate", ("0-10", "10-30", "30-60", ">60")),
)


def waits(row: dict[str, str]) -> bool:
    """Return the textbook's tree's class of an example.

    Examples
    --------
    >>> waits({"Patrons": "Some"}), waits({"Patrons": "Full", "WaitEstimate": ">60"})
    (True, False)
    """
    if row["Patrons"] != "Full":
        return row["Patrons"] == "Some"
    match row["WaitEstimate"]:
        case "0-10":
            return True
        case "10-30":
            return row["Hungry"] == "No" or row["Alternate"] == "No" or row["Raining"] == "Yes"
        case "30-60" if row["Alternate"] == "Yes":
            return row["Fri/Sat"] == "Yes"
        case "30-60":
            return row["Reservation"] == "Yes" or row["Bar"] == "Yes"
        case _:
            return False


def restaurants(examples: int, seed: np.random.SeedSequence) -> DataSet:
    """Return random examples: every value of every attribute equally likely, the class by `waits`."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(len(a.values), size=examples) for a in ATTRIBUTES])
    names = [a.name for a in ATTRIBUTES]
    rows = [[a.values[code] for a, code in zip(ATTRIBUTES, row, strict=True)] for row in codes.tolist()]
    targets = np.array([waits(dict(zip(names, row, strict=True))) for row in rows], dtype=np.int64)
    return DataSet("restaurant", codes.astype(np.float64), ATTRIBUTES, YES_NO, targets)
