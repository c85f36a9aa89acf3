"""Query strategies: which label to ask for next, each a small file behind one protocol (`strategy.Strategy`)."""
