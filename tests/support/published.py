"""Models of ABC4.5 as it was published, for tests that mean this tree: the service's default is another learner."""

from typing import Any

from quercus.client import Specification as ClientSpecification
from quercus.client.plugins import to_proto
from quercus.specification.model import Specification
from quercus.trees import Abc45
from quercus.v1 import model_pb2


def published_tree(*given: Any, **more: Any) -> Specification:
    """Return a specification as the library has it: of the tree, whose splits are not tested."""
    return Specification(*given, **({"learner": Abc45(), "split_significance": 0.0} | more))


def published_model(*given: Any, **more: Any) -> ClientSpecification:
    """Return a specification as a client writes it."""
    return ClientSpecification(*given, **({"learner": "abc45", "split_significance": 0.0} | more))


def published_message(**fields: Any) -> model_pb2.Specification:
    """Return a specification as it is on the wire."""
    given: dict[str, Any] = {"learner": "abc45", "split_significance": 0.0} | fields
    for name in ("learner", "strategy"):
        if isinstance(given.get(name), str):
            given[name] = to_proto(given[name], name)
    return model_pb2.Specification(**given)
