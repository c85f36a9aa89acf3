"""The belief trees of the literature, each a small composition of the pieces of `quercus.trees.growth.batch`.

All learn from a `table.Table`: raw values, declared attributes, and labels that may be uncertain.
"""
