"""The choice of the next query: queries, candidates, strategies."""
