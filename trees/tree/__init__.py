"""A tree as a value: nodes, arrays, branch codes, names."""
