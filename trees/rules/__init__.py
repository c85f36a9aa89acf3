"""The rules of a split, each written once and shared by all evidential trees.

``stopping`` and ``choice`` decide many nodes at once: incremental growth calls them with all nodes of one depth, batch
growth with a single node.
"""
