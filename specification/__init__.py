"""The definition of a model: its attributes, learner and parameters, for client, service and estimators.

==================  ============================================================================
``parameter``       :class:`Parameter`: a name, a default, bounds and a description, stated once
``parameters``      the parameters of models and learners
``attributes``      :class:`Nominal`, :class:`Numeric`
``learners``        the learners by name, each with its parameters
``strategies``      the query strategies by name
``model``           :class:`Specification`
``written_labels``  the grammar of labels as text, for every file, command and screen
==================  ============================================================================

Nothing here needs NumPy, so that a program that only checks names and numbers starts fast.
"""

if __name__ != "quercus.specification":  # by another name every class would exist twice
    raise ImportError(f"import quercus.specification, not {__name__}")
