"""Everything that a server returns about a model, to compare it before and after export and import of its log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from quercus.client import Client

MODEL: Final = ("queries_answered", "queries_refused", "instance_count", "conflicts", "sequence_committed")
ROW: Final = ("id", "values", "history", "contour", "conflict", "display")
ANSWER: Final = ("number", "instance", "labeller", "at", "kind", "state", "text", "reliability", "comment", "took_s",
                 "query", "former", "later", "conflict", "shown")  # fmt: skip
NODE: Final = ("parent", "branch", "attribute", "threshold", "class_name", "count", "theta", "belief", "plausibility",
               "undecided", "mass")  # fmt: skip


def said_of_model(client: Client, model: str) -> Any:
    """Return the labelling policy, the rows with all their labels, the answers and the trees of a model."""
    record = client.wait_grown(model)
    first = client.tree(model)
    rows = [client.get_instance(model, each.id) for each in client.instances(model)]
    said = {
        "model": _cells(record, MODEL),
        "budget": record.specification.budget,
        "policy": _plain(client.labelling_policy(model)),
        "rows": [_cells(row, ROW) for row in rows],
        "answers": [_cells(answer, ANSWER) for answer in client.answers(model)],
        "trees": [
            [_cells(node, NODE) for node in client.tree(model, member=member).nodes]
            for member in range(max(1, len(first.members)))
        ],
        "classified": [
            _plain(each.plausibility) for each in client.classify(model, [row.values for row in rows])
        ],
    }
    return json.loads(json.dumps(said))


def _cells(value: Any, names: tuple[str, ...]) -> list[Any]:
    return [_plain(getattr(value, name)) for name in names]


def _plain(value: Any) -> Any:
    """Return a value as JSON; numbers with 9 digits, because another machine may round sums differently."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if np.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return sorted([_plain(key), _plain(each)] for key, each in value.items())
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(each) for each in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return value
