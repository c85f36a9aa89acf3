"""Labelling: what leases, answers, corrections, statements, agreement and budgets mean. No input or output."""

if __name__ != "quercus.labelling":  # by another name every class would exist twice
    raise ImportError(f"import quercus.labelling, not {__name__}")
