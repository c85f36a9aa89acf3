"""The trees of a model with all names, for people."""

from collections.abc import Iterator, Sequence

from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.class_marks import CLASS_MARKS, OTHER_CLASSES, ClassMark
from quercus.trees import (
    BeliefEntropyModel,
    Edges,
    FlatTree,
    ForestModel,
    LearnedModel,
    OneAgainstRest,
    TreeModel,
    TreeNames,
    branch_names,
)


def named_trees(
    model: LearnedModel, classes: Sequence[str], marks: tuple[ClassMark, ...] = ()
) -> Iterator[tuple[FlatTree, TreeNames]]:
    """Yield the trees of a model, each with its names, in the order of ``model.flat_trees``.

    Parameters
    ----------
    model
        The model.
    classes
        (l,) names of the classes.
    marks
        (l,) marks of the classes; empty: the default ones.
    """
    attributes = tuple(attribute.name for attribute in model.attributes)
    match model:
        case ForestModel():
            for each in model.models:
                yield from named_trees(each, classes, marks)
        case OneAgainstRest():
            for each, name, mark in zip(model.models, classes, CLASS_MARKS, strict=False):
                yield from named_trees(each, (name, f"not {name}"), (mark, OTHER_CLASSES))
        case BeliefEntropyModel():
            branches = tuple(f"most like {name}" for name in classes)
            yield model.flat, TreeNames(tuple(classes), attributes, (branches,) * len(attributes), marks)
        case TreeModel():
            branches_of_each = tuple(_branch_names(model.attributes, model.edges))
            yield model.flat, TreeNames(tuple(classes), attributes, branches_of_each, marks)


def _branch_names(attributes: Sequence[Attribute], edges: Edges) -> Iterator[tuple[str, ...]]:
    """Yield the names of the branches of each attribute; numeric attributes split at thresholds have none."""
    for attribute, inner in zip(attributes, edges or ((),) * len(attributes), strict=True):
        binned = isinstance(attribute, Nominal) or inner
        yield branch_names([attribute], (inner,))[0] if binned else ()
