"""Indices of rows, nodes, contours, attributes and classes in arrays."""

from quercus.kernels.growth import NONE  # in place of an index

__all__ = ["NONE"]
