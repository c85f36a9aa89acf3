"""Two small tables of the textbooks: contact lenses, and waiting for a table in a restaurant."""

import numpy as np

from quercus.specification.attributes import Nominal
from quercus.trees.learners.table import Table

LENSES = (
    Nominal("age", ("young", "pre-presbyopic", "presbyopic")),
    Nominal("prescription", ("myope", "hypermetrope")),
    Nominal("astigmatism", ("no", "yes")),
    Nominal("tears", ("reduced", "normal")),
)
NO_LENSES, SOFT, HARD = 0, 1, 2
# the 24 combinations in order, the last attribute fastest
_LENSES = """
none soft none hard none soft none hard none soft none hard
none soft none none none none none hard none soft none none
"""


def lenses() -> Table:
    values = np.stack(np.meshgrid(range(3), range(2), range(2), range(2), indexing="ij"), axis=-1).reshape(
        -1, 4
    )
    return Table.of_classes(
        values, LENSES, [("none", "soft", "hard").index(word) for word in _LENSES.split()], 3
    )


_NO_YES = ("No", "Yes")
RESTAURANT = (
    Nominal("Alternate", _NO_YES),
    Nominal("Bar", _NO_YES),
    Nominal("Fri/Sat", _NO_YES),
    Nominal("Hungry", _NO_YES),
    Nominal("Patrons", ("None", "Some", "Full")),
    Nominal("Price", ("$", "$$", "$$$")),
    Nominal("Raining", _NO_YES),
    Nominal("Reservation", _NO_YES),
    Nominal("Type", ("French", "Italian", "Thai", "Burger")),
    Nominal("WaitEstimate", ("0-10", "10-30", "30-60", ">60")),
)
ALTERNATE, BAR, FRI_SAT, HUNGRY, PATRONS, PRICE, RAINING, RESERVATION, TYPE, WAIT = range(10)

_TWELVE = """
Yes No  No  Yes Some $$$ No  Yes French  0-10  Yes
Yes No  No  Yes Full $   No  No  Thai    30-60 No
No  Yes No  No  Some $   No  No  Burger  0-10  Yes
Yes No  Yes Yes Full $   Yes No  Thai    10-30 Yes
Yes No  Yes No  Full $$$ No  Yes French  >60   No
No  Yes No  Yes Some $$  Yes Yes Italian 0-10  Yes
No  Yes No  No  None $   Yes No  Burger  0-10  No
No  No  No  Yes Some $$  Yes Yes Thai    0-10  Yes
No  Yes Yes No  Full $   Yes No  Burger  >60   No
Yes Yes Yes Yes Full $$$ No  Yes Italian 10-30 No
No  No  No  No  None $   No  No  Thai    0-10  No
Yes Yes Yes Yes Full $   No  No  Burger  30-60 Yes
"""


def twelve() -> Table:
    """The twelve examples of Russell and Norvig."""
    lines = [line.split() for line in _TWELVE.strip().splitlines()]
    values = [[RESTAURANT[k].values.index(line[k]) for k in range(10)] for line in lines]
    return Table.of_classes(values, RESTAURANT, [_NO_YES.index(line[10]) for line in lines], 2)


def waits(row: np.ndarray) -> bool:
    """Return whether to wait, by the rule from which the textbook's examples are drawn."""
    value = {k: RESTAURANT[k].values[int(row[k])] for k in range(10)}
    if value[PATRONS] != "Full":
        return value[PATRONS] == "Some"
    match value[WAIT]:
        case "0-10":
            return True
        case "10-30":
            return value[HUNGRY] == "No" or value[ALTERNATE] == "No" or value[RAINING] == "Yes"
        case "30-60" if value[ALTERNATE] == "No":
            return value[RESERVATION] == "Yes" or value[BAR] == "Yes"
        case "30-60":
            return value[FRI_SAT] == "Yes"
        case _:
            return False


def restaurant(count: int, seed: int) -> Table:
    """Rows with values drawn uniformly, labelled by the rule."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, len(attribute.values), count) for attribute in RESTAURANT])
    return Table.of_classes(values, RESTAURANT, [int(waits(row)) for row in values], 2)
