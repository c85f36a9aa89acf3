"""The estimator of forests of any of the other trees."""

from collections.abc import Sequence
from typing import Any

from joblib import effective_n_jobs

from quercus.belief.errors import InvalidInput, shown
from quercus.estimators.base import TableClassifier, seed_of
from quercus.estimators.executors import open_executor
from quercus.estimators.trees import BeliefEntropyTreeClassifier
from quercus.specification.parameters import MAX_FEATURES, TREES, VOTE
from quercus.trees import Forest, LearnedModel, Learner, Share, Table, TreeLearner, Vote, fit


class EvidentialForestClassifier(TableClassifier):
    """Forests of belief trees: bootstrap samples, random attributes at each node, and a vote (theory §6).

    Parameters
    ----------
    base
        The estimator of each tree, any but a forest; None: `BeliefEntropyTreeClassifier`.
    n_estimators
        Number of trees.
    vote
        ``"label"``: the class of most trees; ``"mass"``: Dempster's rule over the trees' masses, for at most 16
        classes.
    max_features
        Number of the m remaining attributes that are drawn at a node: ``"root"`` ``⌈√m⌉``, ``"half"`` ``⌈m/2⌉``,
        ``"all"``, or a number.
    n_jobs
        Processes that grow trees; None: this one. The forest is the same.
    executor
        Executor that grows the trees, in the place of `n_jobs`: ``"local"``, ``"processes:N"`` or
        ``"dask://host:port"``. The forest is the same.
    random_state
        Seed of the forest.
    classes, categorical_features
        See `quercus.estimators.base.BeliefClassifier`; those of `base` are ignored.
    """

    def __init__(
        self,
        base: TableClassifier | None = None,
        *,
        n_estimators: int = TREES.default,
        vote: Vote = VOTE.default,
        max_features: Share | int = MAX_FEATURES.default,
        n_jobs: int | None = None,
        executor: str | None = None,
        random_state: Any = None,
        classes: Sequence[Any] | None = None,
        categorical_features: object = "from_dtype",
    ) -> None:
        self.base = base
        self.n_estimators = n_estimators
        self.vote = vote
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.executor = executor
        self.random_state = random_state
        self.classes = classes
        self.categorical_features = categorical_features

    def _make_algorithm(self) -> Learner:
        base = BeliefEntropyTreeClassifier() if self.base is None else self.base
        tree = base._make_algorithm() if isinstance(base, TableClassifier) else None
        if not isinstance(tree, TreeLearner):
            raise InvalidInput("base", f"is {shown(base)}, must be an estimator of a tree")
        seed = seed_of(self.random_state)
        return Forest(tree, self.n_estimators, self.vote, self.max_features, seed)

    def _learn_model(self, table: Table) -> LearnedModel:
        executor = self.executor
        if executor is None:
            executor = "local" if self.n_jobs is None else f"processes:{effective_n_jobs(self.n_jobs)}"
        with open_executor(executor) as opened:
            return fit(self._make_algorithm(), table, executor=opened)
