"""The strategies of the forest, with their reasons: doubts of the members, and of the active tree (theory §10.5)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.specification.parameter import parametric
from quercus.specification.reasons import Fact, Shares
from quercus.specification.strategies import Asks
from quercus.trees.ask.query import Contest, Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import UNEXPLAINED, Reason, similar_rows
from quercus.trees.ask.strategies.leaf_queries import LeafRows
from quercus.trees.ask.strategies.leaf_width import leaf_cells
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.memory_forest.asking import ChosenRow, choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.worth import conditioned_estimates, disagreement_worth, margin_worth

NOTABLE_DISAGREEMENT = 0.05
"""Mean total variation between members and their mean, in [0, 1], below which a reason mentions no disagreement."""
SURE = 0.995
"""If a class has a larger probability, a reason mentions no disagreement."""
MEMORIES_DISAGREE = "What was learned lately and what was learned before disagree about it."


@parametric
class Margin(Strategy):
    """The row with the smallest margin between its likeliest classes; a bonus if no similar row is known."""

    name: ClassVar[str] = "margin"
    asks: ClassVar[frozenset[Asks]] = frozenset({"forest"})

    def worth(self, forest: MemoryForest, rows: Ints) -> Floats:
        """Return what the label of each row (n,) is worth to a forest: (n,) in [0, 2]; 0 before a row is labelled."""
        return margin_worth(forest, rows)

    def queries(self, context: QueryContext, _last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        sample, forest = context.sample, context.forest
        candidates = context.instances_of(sample.candidates(np.arange(len(sample.ids))))
        refused = np.flatnonzero(~sample.askable & sample.table.vacuous[sample.ids])
        choices = list(
            choose_rows(forest, candidates, limit, context.instances_of(refused), worth=self.worth)
        )
        if not choices:
            return
        evidence, rows = forest.evidence, np.array([choice.row for choice in choices])
        theta = forest.theta_of_rows(rows)
        apart, doubt = forest.disagreement(rows, theta), forest.doubt_of_rows(rows, theta)
        is_sure = conditioned_estimates(theta, evidence, rows).max(axis=1) > SURE
        tree = _ActiveTreeReasons(context, rows.tolist())
        for i, choice in enumerate(choices):
            sentence, similar = similar_rows(choice.stands_for)
            if not is_sure[i]:
                sentence = f"{self.say_disagreement(float(apart[i]))} {sentence}".strip()
            reason = Reason(
                sentence,
                (
                    Fact("estimate", Shares(tuple(theta[i].tolist()), "The model")),
                    Fact("disagreement", float(apart[i])),
                    Fact("overlap, in bits", float(doubt.overlap[i])),
                    Fact("ignorance, in bits", float(doubt.ignorance[i])),
                    *similar,
                ),
            )
            yield tree.query_about(choice, reason)

    def say_disagreement(self, _apart: float) -> str:
        """Return a sentence about the members' disagreement, in [0, 1], or "" if it is not why the row was chosen."""
        return ""


@parametric
class MemoryDisagreement(Margin):
    """As margin, and prefers rows about which members with short and long memories disagree."""

    name: ClassVar[str] = "memory-disagreement"

    def worth(self, forest: MemoryForest, rows: Ints) -> Floats:
        """See `Margin`."""
        return disagreement_worth(forest, rows)

    def say_disagreement(self, apart: float) -> str:
        """See `Margin`."""
        return MEMORIES_DISAGREE if apart >= NOTABLE_DISAGREEMENT else ""


class _ActiveTreeReasons:
    """The parts of the reasons for asking about `instances` that the active tree beside a forest provides."""

    def __init__(self, context: QueryContext, instances: Sequence[int]) -> None:
        self._context = context
        self._leaves = LeafRows(context)
        rows = {int(self._leaves.of[row]): row for row in map(context.row_of, instances)}
        about = [self._leaves.query_about(row, 0.0, UNEXPLAINED) for row in rows.values()]
        contests = context.growth.contests_above([query.path for query in about])
        self._of_leaf = {
            leaf: self._query_of_leaf(leaf, query, contest)
            for leaf, query, contest in zip(rows, about, contests, strict=True)
        }

    def query_about(self, choice: ChosenRow, reason: Reason) -> Query:
        """Return the query about a row, with the deepest contested node on its path, or its leaf if there is none."""
        row = self._context.row_of(choice.row)
        found, facts = self._of_leaf[int(self._leaves.of[row])]
        reason = replace(reason, facts=(*reason.facts, *facts)) if facts else reason
        return replace(found, instance=row, score=choice.score, reason=reason)

    def _query_of_leaf(
        self, leaf: int, query: Query, contest: Contest | None
    ) -> tuple[Query, tuple[Fact, ...]]:
        """Return the part of a query that all rows of a leaf share, and the facts that the tree adds to its reason."""
        if contest is not None:
            return replace(
                query,
                path=contest.path,
                rivals=contest.rivals,
                asked=QueryPosition(contest.path, None, None, ()),
                node_count=contest.node_count,
            ), ()
        entropies = self._context.solver.solve_cells(
            leaf_cells(self._context, self._leaves, np.array([leaf]))
        )
        ends = float(entropies.lower[0]), float(entropies.upper[0])
        return query, (Fact("entropy of the leaf, in bits", ends),)
