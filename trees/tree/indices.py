"""Indices of rows, nodes, contours, attributes and classes in arrays."""

from typing import Final

from quercus.kernels import growth

NONE: Final = growth.NONE  # in place of an index
