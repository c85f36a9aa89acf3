"""The rules of a split, each once; all growth of trees calls them.

``stopping``     when a node is a leaf (ABC4.5)
``choice``       which split a node gets: the cut of each attribute, gain ratio, dominance, mid-value (ABC4.5)
``earned``       which splits beat "do not split" beyond chance (ABC4.5)
``dominance``    ties, and the choice among a few intervals
``gain``         split information, and the cut of each attribute where gains are single numbers
``significance`` which splits the labels need

``stopping`` and ``choice`` decide many nodes at once: incremental growth calls them with a level of a tree, batch
growth with one node.
"""
