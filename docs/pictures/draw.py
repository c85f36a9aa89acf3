"""Draw the pictures of the explanations, with `quercus.view.plots`, as PNG files beside this one."""

import io
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from quercus.estimators import ActiveBeliefTreeClassifier
from quercus.view import plots

FOLDER = Path(__file__).resolve().parent
WINES = ("red", "white", "rosé")
MEASURED = ["alcohol", "flavanoids", "color_intensity", "proline"]


def save(name: str, ax: Axes) -> None:
    """Write a picture of few colours: lines need no more."""
    drawn = io.BytesIO()
    ax.figure.savefig(drawn, format="png", dpi=110, facecolor="white")
    Image.open(drawn).convert("RGB").quantize(48).save(FOLDER / f"{name}.png", optimize=True)


def beliefs() -> None:
    """A witness who is right eight times in ten, and what follows for each class."""
    said = {("red",): 0.8, WINES: 0.2}
    save("mass", plots.mass_function(said, WINES))
    save("belief", plots.belief_intervals(WINES, (0.8, 0.0, 0.0), (1.0, 0.2, 0.2)))


def cuts() -> None:
    """The same labels once, and ten times."""
    labels = [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
    save("cut-few", plots.alpha_cut(labels, [1, 1, 1], alpha=0.8, classes=WINES))
    save("cut-many", plots.alpha_cut(labels, [10, 10, 10], alpha=0.8, classes=WINES))


def tree() -> None:
    """A tree of wine with some labels: its root, and its top."""
    bottles = load_wine(as_frame=True)
    values, classes = (
        bottles.data[MEASURED],
        bottles.target.map(dict(enumerate(("Barolo", "Grignolino", "Barbera")))),
    )
    known, _ = train_test_split(np.arange(len(values)), train_size=40, random_state=0, stratify=classes)
    fitted = ActiveBeliefTreeClassifier(bins=None).fit(values.iloc[known], classes.iloc[known])
    save("tree", plots.tree(fitted, depth=2))
    flat, names = fitted._named_tree(0)
    ends = range(flat.interval_start[0], flat.interval_start[1])  # of the root
    found = {
        names.attributes[flat.interval_attribute[k]]: (flat.interval_lower[k], flat.interval_upper[k])
        for k in ends
    }
    save("intervals", plots.gain_ratio_intervals(found, chosen=names.attributes[flat.attribute[0]]))


if __name__ == "__main__":
    mpl.use("Agg")
    beliefs()
    cuts()
    tree()
