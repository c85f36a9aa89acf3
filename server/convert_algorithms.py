"""Algorithms: wire to domain. What the specification says for all of them comes from there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from quercus.belief.errors import InvalidInput
from quercus.proto.v1 import model_pb2
from quercus.server.errors import within
from quercus.trees import algorithms
from quercus.trees.algorithms import Algorithm, Tree

T = TypeVar("T", bound=str)

_COMBINE: Final[Mapping[int, Literal["dempster", "mean"]]] = MappingProxyType(
    {
        model_pb2.TotalUncertaintyTree.COMBINE_UNSPECIFIED: "dempster",
        model_pb2.TotalUncertaintyTree.COMBINE_DEMPSTER: "dempster",
        model_pb2.TotalUncertaintyTree.COMBINE_MEAN: "mean",
    }
)
_LEAF: Final[Mapping[int, Literal["OBE", "LBE", "IBE"]]] = MappingProxyType(
    {
        model_pb2.BeliefEntropyTree.LEAF_UNSPECIFIED: "LBE",
        model_pb2.BeliefEntropyTree.LEAF_OBE: "OBE",
        model_pb2.BeliefEntropyTree.LEAF_LBE: "LBE",
        model_pb2.BeliefEntropyTree.LEAF_IBE: "IBE",
    }
)
_VOTE: Final[Mapping[int, Literal["label", "mass"]]] = MappingProxyType(
    {
        model_pb2.Forest.VOTE_UNSPECIFIED: "label",
        model_pb2.Forest.VOTE_LABEL: "label",
        model_pb2.Forest.VOTE_MASS: "mass",
    }
)
_SHARE: Final[Mapping[int, Literal["root", "half", "all"]]] = MappingProxyType(
    {
        model_pb2.Forest.SHARE_UNSPECIFIED: "root",
        model_pb2.Forest.SHARE_ROOT: "root",
        model_pb2.Forest.SHARE_HALF: "half",
        model_pb2.Forest.SHARE_ALL: "all",
    }
)


def decode_algorithm(message: model_pb2.Algorithm) -> Algorithm:
    """Convert an algorithm to the domain, with the defaults of what is absent.

    Raises
    ------
    InvalidInput
        Naming the field below the algorithm, the value and the bound.
    """
    kind = message.WhichOneof("kind")
    if kind == "forest":
        with within("forest"):
            return _decode_forest(message.forest)
    return _decode_tree(message)


def _decode_tree(message: model_pb2.Algorithm) -> Tree:  # noqa: PLR0911 - a table
    kind = message.WhichOneof("kind")
    with within(kind or "kind"):
        match kind:
            case None | "abc45":
                return algorithms.Abc45()
            case "e2m":
                return algorithms.E2m(informed_only=message.e2m.informed_only)
            case "id3":
                return algorithms.Id3(**_given(message.id3, "max_cuts", "significance"))
            case "c45":
                given = _given(message.c45, "max_cuts", "min_branch", "confidence")
                if given.get("confidence") == 0.0:
                    given["confidence"] = None
                return algorithms.C45(**given)
            case "averaging":
                return algorithms.Averaging(**_given(message.averaging, "max_cuts"))
            case "total_uncertainty":
                below = message.total_uncertainty
                return algorithms.TotalUncertainty(
                    lam=below.lam if below.HasField("lam") else None,
                    combine=_choice(_COMBINE, below.combine, "combine"),
                    seed=below.seed,
                    **_given(below, "max_cuts", "folds"),
                )
            case "belief_entropy":
                return algorithms.BeliefEntropy(_choice(_LEAF, message.belief_entropy.leaf, "leaf"))
            case "forest":
                raise InvalidInput("base", "is a forest, must be a tree")


def _decode_forest(message: model_pb2.Forest) -> algorithms.Forest:
    with within("base"):
        base = _decode_tree(message.base) if message.HasField("base") else algorithms.BeliefEntropy()
    number = message.WhichOneof("max_features") == "number"
    return algorithms.Forest(
        base=base,
        vote=_choice(_VOTE, message.vote, "vote"),
        max_features=message.number if number else _choice(_SHARE, message.share, "share"),
        seed=message.seed,
        **_given(message, "trees"),
    )


def _given(message: Any, *fields: str) -> dict[str, Any]:
    return {field: getattr(message, field) for field in fields if message.HasField(field)}


def _choice(known: Mapping[int, T], number: int, field: str) -> T:
    found = known.get(number)
    if found is None:
        raise InvalidInput(field, f"is {number}, which is no choice here")
    return found
