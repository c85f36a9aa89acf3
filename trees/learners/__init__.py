"""The learners of the literature, most of them a small set of rules for `quercus.trees.growth.batch`.

All learn from a `table.Table`: raw values, declared attributes, and labels that may be uncertain.
"""
