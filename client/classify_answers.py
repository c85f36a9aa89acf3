"""Answers of Classify, of one or several requests, as one result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from quercus.client.results import Classifications, Floats, Integers
from quercus.client.unseen import UnseenTally
from quercus.v1 import classify_pb2


def classifications(messages: list[classify_pb2.ClassifyResponse], want_paths: bool) -> Classifications:
    """Merge the responses of one or several requests, in order."""
    classes = tuple(messages[0].classes)

    def joined_array(name: str) -> Floats:
        parts = [np.array(getattr(m, name), dtype=np.float64) for m in messages]
        return np.concatenate(parts).reshape(-1, len(classes))

    steps = (tuple((s.attribute, s.value) for s in path.steps) for m in messages for path in m.paths)
    masses = [mass for m in messages for mass in _row_masses(m)]
    unseen = UnseenTally()
    for message in messages:
        unseen.add_messages(message.unseen)
    return Classifications(
        classes=classes,
        indices=np.concatenate([np.array(m.class_indices, dtype=np.int64) for m in messages]),
        theta=joined_array("theta"),
        pignistic=joined_array("pignistic"),
        belief=joined_array("belief"),
        plausibility=joined_array("plausibility"),
        nodes=_nodes_reached(messages),
        versions=np.concatenate([np.full(len(m.class_indices), m.tree_version, np.int64) for m in messages]),
        version=min(m.tree_version for m in messages),
        as_of=min(m.as_of for m in messages),
        paths=tuple(steps) if want_paths else None,
        class_sets=np.concatenate([np.array(m.class_sets, dtype=np.uint64) for m in messages]),
        masses=tuple(masses) if len(masses) == sum(len(m.class_indices) for m in messages) else None,
        unseen=unseen.results(sum(len(m.class_indices) for m in messages)),
    )


def _nodes_reached(messages: list[classify_pb2.ClassifyResponse]) -> Integers | None:
    """Return the node of each row; ``None`` if several trees classified some of them."""
    if any(len(m.nodes) != len(m.class_indices) for m in messages):
        return None
    return np.concatenate([np.array(m.nodes, dtype=np.int64) for m in messages])


def _row_masses(message: classify_pb2.ClassifyResponse) -> Iterator[Mapping[tuple[str, ...], float]]:
    """Yield the mass function of each row; equal ones are shared."""
    different = [
        {
            tuple(name for c, name in enumerate(message.classes) if mask >> c & 1): value
            for mask, value in zip(mass.focal_sets, mass.masses, strict=True)
        }
        for mass in message.masses
    ]
    return (different[at] for at in message.mass_indices)


def no_classifications(classes: tuple[str, ...], want_paths: bool) -> Classifications:
    """Return the result for no rows; no tree was used, so the version is 0."""
    none, empty = np.empty(0, dtype=np.int64), np.empty((0, len(classes)))
    paths = () if want_paths else None
    return Classifications(classes, none, empty, empty, empty, empty, none, none, 0, 0, paths)
