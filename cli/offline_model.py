"""A model that grows without a server: the grower's engines, on a log in memory.

A tree induced from a file is therefore the one that a server would serve for the same rows, labels and answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import Label
from quercus.client.results import Tree
from quercus.client.specification_messages import message_of_specification
from quercus.client.specifications import Specification as GivenSpecification
from quercus.client.treeview import RenderFormat, render_request
from quercus.server.growth.engines import GrownTrees, TreeEngine, learns_again, tree_engine
from quercus.server.growth.relearning import RelearningEngine
from quercus.server.services.tree_drawings import draw_tree
from quercus.server.wire.agenda import encode_asked
from quercus.server.wire.models import complete_specification, decode_specification
from quercus.server.wire.trees import decode_snapshot
from quercus.specification.model import Specification
from quercus.storage import Event, EventKind, InstanceColumns, Snapshot
from quercus.trees import UncertainValues

Oracle = Callable[[int], Label | None]
"""Returns the label of a row, or None if it is impossible to tell."""


def checked_specification(given: GivenSpecification) -> Specification:
    """Return a specification with its defaults, checked as a server checks it.

    Raises
    ------
    quercus.client.InvalidArgument, quercus.belief.errors.InvalidInput
        Naming the field, the value and the bound.
    """
    return decode_specification(complete_specification(message_of_specification(given)))


@dataclass(frozen=True, eq=False)
class OfflineModel:
    """A grown model.

    Parameters
    ----------
    grown
        Its trees.
    as_of
        Number of events in its log.
    queries
        The queries in the order in which they were asked, as JSON.
    answered
        Rows whose query was answered.
    """

    grown: GrownTrees
    as_of: int
    queries: tuple[dict[str, Any], ...]
    answered: frozenset[int]

    def tree(self, member: int) -> Tree:
        """Return a tree by its number."""
        return Tree.from_message(decode_snapshot("induced", self._snapshot(), member))

    def draw(self, form: RenderFormat, member: int | None, depth: int | None) -> str:
        """Draw a tree; if there are several and no `member` is given, an overview."""
        request = render_request("induced", None, form, member, depth)
        return draw_tree(self._snapshot(), request.format, member, depth).content

    def predicted_classes(self, cells: UncertainValues) -> list[str]:
        """Return the name of the predicted class of each row."""
        classes = self.grown.specification.frame.classes
        return [classes[c] for c in self.grown.model.predict_cells(cells).klass.tolist()]

    def _snapshot(self) -> Snapshot:
        return Snapshot(version=0, as_of=self.as_of, data=self.grown.encode(), created_at=0.0)


def grow_offline(
    specification: Specification, cells: UncertainValues, labels: Sequence[Label], oracle: Oracle | None
) -> OfflineModel:
    """Grow a model from rows, then ask the oracle until the budget is spent or no query is left.

    Parameters
    ----------
    specification
        Of the model.
    cells
        The values of n rows.
    labels
        Of the rows.
    oracle
        None: no query is answered.

    Raises
    ------
    InvalidInput
        If a value is impossible, or is uncertain and the learner does not support that.
    """
    refusal = specification.learner.refusal_of_uncertain
    if cells.parts and refusal:
        row, k = min(cells.parts)
        raise InvalidInput(f"row {row}, {specification.attributes[k].name}", refusal)
    rows = InstanceColumns(1, cells.values, [encode(label) for label in labels], cells.parts)
    log: list[InstanceColumns | Event] = [rows]
    queries: list[dict[str, Any]] = []
    answered: set[int] = set()
    follower = None if learns_again(specification) else tree_engine(specification)
    asks = oracle is not None and specification.budget > 0
    if follower is not None or asks:
        engine = follower or TreeEngine(specification)
        engine.fold_events(log)
        while oracle is not None and (chosen := engine.choose_queries(1)):
            ((instance, query),) = chosen
            splits = engine.named_splits({})
            named = None if query.attribute is None else splits[query.attribute]
            queries.append(
                {
                    "row": query.instance,
                    "path": [
                        [splits[at].attribute, splits[at].branches[branch]] for at, branch in query.path
                    ],
                    "attribute": None if named is None else named.attribute,
                    "value": None if named is None or query.code is None else named.branches[query.code],
                    "score": query.score,
                }
            )
            label = oracle(query.instance)
            settling = Event(
                sequence=len(labels) + len(queries),
                kind=EventKind.REFUSAL if label is None else EventKind.ANSWER,
                instance=instance,
                id="",
                values=None,
                label=None if label is None else encode(label),
                author="oracle",
                reliability=1.0,
                asked=encode_asked(query.asked),
                conflict=False,
                specification=None,
                created_at=0.0,
            )
            log.append(settling)
            engine.fold_events(log[-1:])
            if label is not None:
                answered.add(query.instance)
    learner = follower or RelearningEngine(specification)
    if follower is None:
        learner.fold_events(log)
    return OfflineModel(
        learner.grown_trees({}), len(labels) + len(queries), tuple(queries), frozenset(answered)
    )
