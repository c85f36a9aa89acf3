"""Names of resources, ``models/{model}/...``: construction and parsing."""

from __future__ import annotations

from quercus.specification.names import decode_id, encode_id


def model_resource(model: str) -> str:
    """Return ``models/{model}``."""
    return f"models/{model}"


def instance_resource(model: str, instance: str) -> str:
    """Return ``models/{model}/instances/{id}``, with the id percent-encoded."""
    return f"models/{model}/instances/{encode_id(instance)}"


def query_resource(model: str, number: int) -> str:
    """Return ``models/{model}/queries/{number}``."""
    return f"models/{model}/queries/{number}"


def tree_resource(model: str, version: int | None) -> str:
    """Return ``models/{model}/trees/{version}``, or ``.../latest``."""
    return f"models/{model}/trees/{'latest' if version is None else version}"


def model_of(resource: str) -> str:
    """Return the model in a resource name ``models/{model}/...``."""
    return resource.split("/", 2)[1]


def id_of(resource: str) -> str:
    """Return the last segment of a resource name ``models/{model}`` or ``models/{model}/instances/{id}``."""
    return decode_id(resource.rsplit("/", 1)[-1], "instance")


def number_of(resource: str) -> int:
    """Return the last segment of a resource name ``models/{model}/queries/{number}``."""
    return int(resource.rsplit("/", 1)[-1])
