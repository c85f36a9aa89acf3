"""Which label to ask for: queries, candidates, strategies."""
