"""A stream that changes: the forest and a single tree learn it side by side, and the service says how right they are.

Rows come with their labels, a batch at a time. After 1,400 rows the classes change places. How right each model is, the
service measures by itself, on labels that came after their prediction.
"""

from __future__ import annotations

import numpy as np

from quercus.client.client import Client
from quercus.client.results import RecentAccuracy
from quercus.client.specifications import Specification
from quercus.client.values import Floats
from quercus.specification.attributes import Numeric

MODELS = {"stream-forest": "active-forest", "stream-tree": "abc45"}
CLASSES = ("calm", "alarm")
ROWS, CHANGE, BATCH = 2_000, 1_400, 100
SEED = 0


def stream_rows() -> tuple[Floats, list[str]]:
    """Return the stream: values (2,000, 2) and classes; from row 1,400 on, former calm is an alarm."""
    rng = np.random.default_rng(SEED)
    values = rng.normal(size=(ROWS, 2))
    alarm = (values.sum(axis=1) > 0) ^ (np.arange(ROWS) >= CHANGE)
    return values, [CLASSES[int(each)] for each in alarm]


def play_stream(client: Client) -> dict[str, RecentAccuracy]:
    """Let both models learn the stream; return the accuracy of each algorithm on its last rows.

    Each batch is in the trees before the next one comes.
    """
    values, classes = stream_rows()
    attributes = [Numeric("temperature"), Numeric("pressure")]
    for model, algorithm in MODELS.items():
        client.create_model(model, Specification(attributes, CLASSES, algorithm={"name": algorithm}))
    for start in range(0, ROWS, BATCH):
        batch = slice(start, start + BATCH)
        for model in MODELS:
            client.push(model, values[batch].tolist(), classes[batch])
        for model in MODELS:
            client.wait_grown(model)
    found = {algorithm: client.get_model(model).accuracy for model, algorithm in MODELS.items()}
    return {name: accuracy for name, accuracy in found.items() if accuracy is not None}
