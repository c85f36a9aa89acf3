"""The public names of `quercus.specification` in the place where they were before it."""

from quercus.specification.algorithms import Pruning
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.model import Specification

__all__ = ["Attribute", "Nominal", "Numeric", "Pruning", "Specification"]
