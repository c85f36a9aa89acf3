"""The belief trees of the literature, each a small set of rules for `quercus.trees.growth.batch`.

All learn from a `table.Table`: raw values, declared attributes, and labels that may be uncertain.
"""
