"""A tree as a value: nodes, arrays, codes of branches, text and pictures."""
