"""The shapes of a model's log: the numbers of attributes and classes of its rows and labels, by event.

A model that was extended has events of several shapes. The log keeps each event as it was stored; readers see all of
them in the present shape. Attributes that were added later are missing in earlier rows;
`quercus.belief.codec.widened` says what earlier labels mean for classes that were added later.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from quercus.belief.codec import widened
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import MAX_CLASSES
from quercus.labelling.checks import MAX_COUNT
from quercus.labelling.event import Event
from quercus.labelling.row_values import widened_row
from quercus.specification.parameters import MAX_ATTRIBUTES


class Shape(NamedTuple):
    """The shape of the events after number `since`, the event that extended the model (0 for the first shape)."""

    since: int
    attributes: int
    classes: int


@dataclass(frozen=True)
class Shapes:
    """The shapes of a log, oldest first.

    Attributes
    ----------
    steps : tuple of Shape
        Empty for a model that was never extended, whose events all have the same shape.
    """

    steps: tuple[Shape, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> "Shapes":
        """Return the shapes that `text` describes (see `text`); None stands for a model that was never extended."""
        return _parsed(text) if text else NEVER_EXTENDED

    @classmethod
    def of(cls, rows: Sequence[object]) -> "Shapes":
        """Return the shapes of rows (since, attributes, classes), see `rows`.

        Raises
        ------
        InvalidInput
            If these cannot be the shapes of a log.
        """
        steps: list[Shape] = []
        for row in rows:
            if not (isinstance(row, list | tuple) and [type(each) for each in row] == [int] * 3):
                raise InvalidInput("shapes", f"have {shown(row)}, must be of three whole numbers each")
            step = Shape(*row)
            before = steps[-1] if steps else Shape(-1, 1, 2)
            grows = not steps or (step.attributes, step.classes) != before[1:]
            if not (
                grows
                and (step.since > before.since if steps else step.since == 0)
                and step.since <= MAX_COUNT
                and before.attributes <= step.attributes <= MAX_ATTRIBUTES
                and before.classes <= step.classes <= MAX_CLASSES
            ):
                raise InvalidInput("shapes", f"have {shown(row)}, which cannot follow {list(before)}")
            steps.append(step)
        if len(steps) == 1:
            raise InvalidInput("shapes", "have one row, must have none, or two and more")
        return cls(tuple(steps))

    @property
    def text(self) -> str | None:
        """The shapes as JSON, None if the model was never extended; `parse` reads it."""
        return json.dumps(self.rows, separators=(",", ":")) if self.steps else None

    @property
    def rows(self) -> list[list[int]]:
        """The shapes as rows (since, attributes, classes)."""
        return [list(step) for step in self.steps]

    @property
    def extensions(self) -> int:
        """Number of times that the model was extended."""
        return max(0, len(self.steps) - 1)

    @property
    def since(self) -> int:
        """Number of the event that last extended the model; 0 if it was never extended."""
        return self.steps[-1].since if self.steps else 0

    @cached_property
    def widths(self) -> frozenset[int]:
        """All numbers of attributes that rows of this model have had; empty if it was never extended."""
        return frozenset(step.attributes for step in self.steps)

    def frame_of_size(self, given: int, now: int) -> int:
        """Return the number of classes of a contour with `given` numbers: `given` if a shape has as many, or `now`."""
        return given if any(step.classes == given for step in self.steps) else now

    @cached_property
    def _starts(self) -> list[int]:
        return [step.since for step in self.steps]

    def after(self, sequence: int, before: tuple[int, int], now: tuple[int, int]) -> "Shapes":
        """Return the shapes after event `sequence` extends a model; `before` and `now` count attributes and classes."""
        return Shapes((*(self.steps or (Shape(0, *before),)), Shape(sequence, *now)))

    def shape_of(self, sequence: int) -> Shape:
        """Return the shape of an event; the model must have been extended."""
        return self.steps[bisect_right(self._starts, sequence) - 1]

    def up_to(self, sequence: int) -> "Shapes":
        """Return the shapes of the log up to an event."""
        steps = tuple(step for step in self.steps if step.since <= sequence)
        return Shapes(steps) if len(steps) > 1 else NEVER_EXTENDED

    def widen_label(self, sequence: int, label: bytes) -> bytes:
        """Return the label of an event, in the present shape."""
        if sequence > self.since:
            return label
        return widened(label, self.shape_of(sequence).classes, self.steps[-1].classes)

    def widen_values(self, values: bytes) -> bytes:
        """Return the stored values of an INSTANCE event, in the present shape."""
        return widened_row(values, self.steps[-1].attributes)


NEVER_EXTENDED: Final = Shapes()


def widened_event(event: Event, shapes: Shapes) -> Event:
    """Return an event of a model, in the present shape of the model."""
    if event.sequence > shapes.since or (event.values is None and event.label is None):
        return event
    return replace(
        event,
        values=None if event.values is None else shapes.widen_values(event.values),
        label=None if event.label is None else shapes.widen_label(event.sequence, event.label),
    )


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Shapes:
    return Shapes.of(json.loads(text))
