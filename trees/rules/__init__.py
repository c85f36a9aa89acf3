"""The rules of a split, each once; all growth of trees calls them.

``stopping`` and ``choice`` decide many nodes at once: incremental growth calls them with a level of a tree, batch
growth with one node.
"""
