"""Classes by the nearest rows, each a piece of evidence (Denoeux 1995)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.parameter import parameter, parametric
from quercus.trees import LearnedModel, Learner, Predictions, Table, UncertainValues, first_most_likely


@parametric
class Nearest(Learner):
    """The labels of the nearest rows, combined by Dempster's rule."""

    name: ClassVar[str] = "nearest"
    neighbours: int = parameter(5, "Number of rows that are listened to", 1, 1_000)
    reach: float = parameter(0.5, "Distance at which a row is believed by half", 0.001, 1_000)

    def fit(self, table: Table, *, executor: object = None) -> LearnedModel:
        """See `Learner`."""
        told = (table.contours.min(axis=1) < 1) & (table.weights > 0)
        rows, contours = table.values[told], table.contours[told]
        return NearestModel(table.attributes, table.size, rows, contours, self.neighbours, self.reach)

    def restore_model(self, state: dict, arrays: dict, attributes: tuple, size: int) -> LearnedModel:
        """See `Learner`."""
        return NearestModel(attributes, size, arrays["rows"], arrays["contours"], **state)


@dataclass(frozen=True, eq=False)
class NearestModel(LearnedModel):
    """Rows (n, K) and the contours of their labels (n, l)."""

    attributes: tuple[Attribute, ...]
    size: int
    rows: np.ndarray
    contours: np.ndarray
    neighbours: int
    reach: float

    def stored_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """See `LearnedModel`."""
        arrays = {"rows": self.rows, "contours": self.contours}
        return {"neighbours": self.neighbours, "reach": self.reach}, arrays

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """See `LearnedModel`; a value that is uncertain counts as unknown."""
        plausibility = np.array([self._plausibility(row) for row in cells.values]).reshape(-1, self.size)
        theta = plausibility / plausibility.sum(axis=1, keepdims=True)
        others = [np.delete(plausibility, c, axis=1).max(axis=1) for c in range(self.size)]
        return Predictions(first_most_likely(theta), theta, 1.0 - np.stack(others, axis=1), plausibility)

    def _plausibility(self, row: np.ndarray) -> np.ndarray:
        if not len(self.rows):
            return np.ones(self.size)
        nominal = np.array([isinstance(each, Nominal) for each in self.attributes])
        apart = np.where(nominal, self.rows != row, np.abs(self.rows - row))
        distance = np.sqrt((np.nan_to_num(apart, nan=1.0) ** 2).mean(axis=1))
        near = np.argsort(distance, kind="stable")[: self.neighbours]
        trust = 0.5 ** (distance[near, np.newaxis] / self.reach)
        product = (1.0 - trust * (1.0 - self.contours[near])).prod(axis=0)
        return product / product.max() if product.any() else np.ones(self.size)
