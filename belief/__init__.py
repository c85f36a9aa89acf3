"""Belief functions on a finite frame, the form of labels that may be uncertain.

Pure mathematics on numbers and NumPy arrays, no input or output. Import from the modules:

=============  ==============================================================================
``arrays``     arrays by the type of their elements
``errors``     :class:`InvalidInput`, raised for every invalid input
``frame``      :class:`Frame`: the classes, in declared order, and their bit masks
``mass``       :class:`MassFunction`: masses on focal sets (bit masks)
``measures``   belief, plausibility, commonality, pignistic probability, nonspecificity, entropies
``rules``      conjunctive, Dempster's and the disjunctive rule, discounting
``cautious``   the cautious rule for overlapping evidence
``contour``    checks and properties of contours (plausibilities of the single classes)
``label``      the three kinds of label and their contours
``given``      labels in the forms in which people and files give them
``codec``      labels to bytes and back
``evidence``   the effect of an answer on the evidence of one instance
=============  ==============================================================================

Notation as in theory §1: the frame has ``l`` classes; bit ``c`` of a mask stands for class ``c``.
"""

if __name__ != "quercus.belief":  # under another name every class would exist twice
    raise ImportError(f"import quercus.belief, not {__name__}")
