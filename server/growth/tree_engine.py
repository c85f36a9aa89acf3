"""A tree that follows the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from quercus.belief.codec import decode_contours
from quercus.belief.label import contour
from quercus.server.growth.accuracy_counter import AccuracyCounter
from quercus.server.growth.grown_trees import GrownTrees, full_attributes, specification_of
from quercus.server.growth.log_events import LabelUpdate, LogEvents
from quercus.server.growth.saved_columns import SavedEngine
from quercus.server.wire.agenda import decode_asked, encode_asked
from quercus.specification.model import Specification
from quercus.specification.strategies import chosen_strategy
from quercus.storage import Event, InstanceColumns
from quercus.trees import (
    Abc45,
    AccuracyBlock,
    Answered,
    AverageConfidence,
    Corrected,
    GrowthState,
    Observed,
    Query,
    Refused,
    Respecified,
    SavedEvidence,
    SplitName,
    TreeModel,
    grow,
    restored_state,
    saved_evidence,
    split_names,
)


def as_active(specification: Specification) -> Specification:
    """Return the specification of the active tree over the same evidence. Beside a forest it does not ask."""
    is_asked = specification.algorithm.asks == "tree"
    strategy = chosen_strategy(specification.strategy if is_asked else None, "tree")
    return replace(specification, algorithm=Abc45(), strategy=strategy)


class IncrementalEngine:
    """A tree that follows the log.

    Parameters
    ----------
    specification : specification of the model.
    followed : returns the specification of the active tree that grows, from the model's.
    """

    def __init__(
        self, specification: Specification, followed: Callable[[Specification], Specification]
    ) -> None:
        self._specification = specification
        self._followed = followed
        self._state = GrowthState.initial(followed(specification))
        self._log = LogEvents(specification.frame.size)
        self._grown: TreeModel | None = None  # the last tree; it predicts the rows that are folded next
        self._accuracy: tuple[AccuracyBlock, ...] = ()

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        events = [self._to_tree_event(entry) for entry in self._log.read_entries(parts)]
        counter = AccuracyCounter(self._state, events)
        self._state = grow(self._state, events)
        if self._grown is not None:
            self._accuracy = counter.add_new_labels(self._accuracy, self._grown, self._state)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the grown trees on rows whose label came later, in blocks, the oldest first."""
        return self._accuracy

    @property
    def is_settled(self) -> bool | None:
        """True if no split is contested and every leaf has a labelled row; None if the tree asks regardless."""
        return self._state.settled

    def resume_accuracy(self, accuracy: tuple[AccuracyBlock, ...]) -> None:
        """Continue from the counts of an earlier grower."""
        self._accuracy = accuracy

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the tree of the folded events."""
        state, specification = self._state, self._specification
        model = TreeModel(specification.attributes, specification.frame.size, state.flat, state.edges)
        self._grown = model
        own = AverageConfidence.of_tree(state.flat)
        names, codes = state.names(vocabulary), state.evidence.codes
        others = {
            each.name: int(
                np.count_nonzero(codes[:, k] == len(names[k]) - 1)
            )  # the bucket is the last branch
            for k, each in full_attributes(specification.attributes, vocabulary)
        }
        return GrownTrees(specification, model, state.edges, names, own, others)

    @property
    def strategy_name(self) -> str:
        """Name of the strategy that chooses."""
        return self._specification.strategy.name

    def choose_queries(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        return tuple((self._log.sequence_of(query.instance), query) for query in self._state.agenda(limit))

    def named_splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return the names of the splits, which queries name by number."""
        state = self._state
        return split_names(self._specification.attributes, state.edges, state.names(vocabulary))

    def saved_state(self) -> SavedEngine | None:
        """Return the folded state, to be saved; None if it cannot be saved."""
        evidence = saved_evidence(self._state)
        head = {
            "specification": self._log.specification.hex(),
            "answers": evidence.answers,
            "asked": None if evidence.asked is None else encode_asked(evidence.asked).decode(),
        }
        return SavedEngine(head, {**evidence.columns, "sequences": self._log.sequences})

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue from a saved state, before anything is folded; ``ValueError`` if it does not fit."""
        stored, asked = bytes.fromhex(saved.head["specification"]), saved.head["asked"]
        specification = specification_of(stored) if stored else self._specification
        evidence = SavedEvidence(
            int(saved.head["answers"]), None if asked is None else decode_asked(asked.encode()), saved.columns
        )
        state = restored_state(self._followed(specification), evidence)
        if len(saved.columns["sequences"]) != state.instance_count:
            raise ValueError(f"{state.instance_count} rows have {len(saved.columns['sequences'])} sequences")
        self._specification, self._state = specification, state
        self._log.restore_instances(saved.columns["sequences"], stored)

    def _to_tree_event(
        self, entry: InstanceColumns | LabelUpdate | Specification
    ) -> Observed | Answered | Refused | Corrected | Respecified:
        size = self._specification.frame.size
        match entry:
            case InstanceColumns():
                return Observed(entry.values, decode_contours(entry.labels, size))
            case Specification():
                self._specification = entry
                return Respecified(self._followed(entry))
            case LabelUpdate():
                label, reliability, replaces = entry.reported
                known = None if label is None else contour(label, size)
                if replaces:
                    return Corrected(entry.instance, known, reliability)
                asked = decode_asked(entry.asked)
                if known is None:
                    return Refused(entry.instance, asked)
                return Answered(entry.instance, known, reliability, asked)


class ActiveTreeEngine(IncrementalEngine):
    """The active tree of a log, which asks.

    Parameters
    ----------
    specification : specification of the model.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification, as_active)
