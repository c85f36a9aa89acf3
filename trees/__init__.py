"""Learning: evidential likelihood, entropy intervals, gain, dominance, queries, growth, classification."""

if __name__ != "quercus.trees":  # by another name every class would exist twice
    raise ImportError(f"import quercus.trees, not {__name__}")
