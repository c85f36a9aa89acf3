"""Indices of rows, nodes, contours, attributes and classes in arrays."""

NONE = -1  # in place of an index
