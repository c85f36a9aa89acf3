"""The rules of labelling: leases, answers, corrections, statements, agreement and budgets. Pure, without I/O."""

if __name__ != "quercus.labelling":  # by another name every class would exist twice
    raise ImportError(f"import quercus.labelling, not {__name__}")
