"""What an estimator of many trees does beyond its learner: it grows them in several processes."""

from joblib import effective_n_jobs

from quercus.estimators.base import TableClassifier
from quercus.estimators.executors import open_executor
from quercus.trees import LearnedModel, Table, fit


class ParallelClassifier(TableClassifier):
    """Base of the estimators whose trees are grown by several processes; the model is the same."""

    n_jobs: int | None
    executor: str | None

    def _learn_model(self, table: Table) -> LearnedModel:
        executor = self.executor
        if executor is None:
            executor = "local" if self.n_jobs is None else f"processes:{effective_n_jobs(self.n_jobs)}"
        with open_executor(executor) as opened:
            return fit(self._make_algorithm(), table, executor=opened)
