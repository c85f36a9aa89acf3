"""The nodes of a tree in words, for text, DOT, SVG files and the terminal; the console has its own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quercus.specification.shares import decimal_text
from quercus.view.words import counted

if TYPE_CHECKING:  # the command line shows a server's trees, and does not import the learners
    from quercus.trees import FoldedTree, TreeNames

MAX_LABEL_CHARS: Final = 28
SHOWN_CLASSES: Final = 4
"""Maximum number of classes in a node's estimate; of a larger frame, the likeliest are shown."""


@dataclass(frozen=True, slots=True)
class NodeWords:
    """A node in words.

    Attributes
    ----------
    branch
        Name of the branch from the parent; empty for the root.
    class_name, count, estimate
        Its class, the number of its rows, and its class probabilities.
    attribute
        Attribute of its split; empty for a leaf.
    mass
        The mass function of a leaf; empty if it has none.
    undecided
        Whether more labels may change the split.
    hidden
        Number of nodes below it that are not shown.
    """

    branch: str
    class_name: str
    count: int
    estimate: str
    attribute: str
    mass: str
    undecided: bool
    hidden: int

    @classmethod
    def of(cls, folded: FoldedTree, index: int, names: TreeNames) -> NodeWords:
        """Return the words of a node of a tree in columns."""
        flat, mass = folded.flat, ""
        attribute = int(flat.attribute[index])
        if attribute < 0:
            here = slice(int(flat.mass_start[index]), int(flat.mass_start[index + 1]))
            pairs = sorted(zip(flat.mass_set[here].tolist(), flat.mass_value[here].tolist(), strict=True))
            sets = [
                ([name for c, name in enumerate(names.classes) if mask >> c & 1], value)
                for mask, value in pairs
            ]
            mass = mass_text(sets, len(names.classes), conflict=bool(flat.conflict[index]))
        return cls(
            names.step(flat, index) if index else "",
            names.classes[int(flat.klass[index])],
            int(flat.count[index]),
            estimate_text(flat.theta[index].tolist(), names.classes, as_parent=bool(flat.as_parent[index])),
            "" if attribute < 0 else names.attributes[attribute],
            mass,
            bool(flat.undecided[index]),
            int(folded.hidden[index]),
        )

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The parts of its line of text, each with its name, a field of this class."""
        parts = [
            ("branch", f"{one_line(self.branch)}: " if self.branch else ""),
            ("class_name", one_line(self.class_name)),
            ("count", f"  n={self.count}"),
            ("estimate", f"  ({self.estimate})"),
            ("attribute", f"  by {one_line(self.attribute)}" if self.attribute else ""),
            ("mass", f"  {self.mass}" if self.mass else ""),
            ("undecided", "  UNDECIDED" if self.undecided else ""),
            ("hidden", f"  {self.hidden_text}" if self.hidden else ""),
        ]
        return [part for part in parts if part[1]]

    @property
    def picture_lines(self) -> list[str]:
        """The lines in its box: the split or the class, class and count, the class probabilities."""
        klass = shortened_text(self.class_name)
        count = f"n = {self.count}" + (", undecided" if self.undecided else "")
        head = [shortened_text(self.attribute), f"{klass}, {count}"] if self.attribute else [klass, count]
        return [*head, self.estimate, *filter(None, [self.mass, self.hidden_text])]

    @property
    def hidden_text(self) -> str:
        """The number of nodes that are not shown; empty if all are."""
        return f"… {counted(self.hidden, 'node')} below" if self.hidden else ""


def one_line(text: str) -> str:
    """Return `text` on one line, without control characters or characters that are invalid in XML."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def shortened_text(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return `text` on one line and with at most `limit` characters."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def estimate_text(
    theta: Sequence[float], classes: Sequence[str], most: int = SHOWN_CLASSES, *, as_parent: bool = False
) -> str:
    """Return the class probabilities in words: all of them for a small frame, the likeliest for a large one.

    Parameters
    ----------
    theta, classes
        Each class's probability and name.
    most
        Size of the largest frame whose classes are all shown; of a larger one, the `most` - 1 likeliest.
    as_parent
        Whether the node has no evidence, and predicts like its parent.

    Examples
    --------
    >>> estimate_text((0.25, 0.75), ("yes", "no"))
    'yes 0.25  no 0.75'
    >>> estimate_text((0.1, 0.5, 0.0, 0.3, 0.1), ("a", "b", "c", "d", "e"), as_parent=True)
    'a 0.10  b 0.50  d 0.30  …, as its parent'
    """
    shown: Iterable[int] = range(len(classes))
    if len(classes) > most:
        shown = sorted(sorted(shown, key=lambda c: (-theta[c], c))[: most - 1])
    text = "  ".join(f"{shortened_text(classes[c], 12)} {decimal_text(theta[c])}" for c in shown)
    more = "  …" if len(classes) > most else ""
    return f"{text}{more}{', as its parent' if as_parent else ''}"


def mass_text(mass: Iterable[tuple[Sequence[str], float]], size: int, *, conflict: bool) -> str:
    """Return a mass function in words, the largest masses first; empty if there is none.

    Parameters
    ----------
    mass
        The classes of each focal set, and its mass. The set of all classes is called "any".
    size
        Number of classes in the frame.
    conflict
        Whether the labels conflict: the mass function is a mean then, and the text says so.

    Examples
    --------
    >>> mass_text([(("a",), 0.25), (("a", "b"), 0.75)], 2, conflict=False)
    'm: any 0.75  a 0.25'
    """
    ranked = sorted(mass, key=lambda pair: -pair[1])  # stable: of equal masses the smaller set comes first
    if not ranked:
        return ""
    shown = [f"{_set_text(names, size)} {decimal_text(value)}" for names, value in ranked[:SHOWN_CLASSES]]
    more = ["…"] if len(ranked) > SHOWN_CLASSES else []
    return f"m: {'  '.join([*shown, *more])}{', a mean: the labels conflict' if conflict else ''}"


def _set_text(names: Sequence[str], size: int) -> str:
    if len(names) == size:
        return "any"
    shown = [shortened_text(name, 12) for name in names]
    return shown[0] if len(shown) == 1 else "{" + shortened_text(", ".join(shown)) + "}"
