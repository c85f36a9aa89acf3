"""Learning: evidential likelihood, entropy intervals, gain, dominance, queries, growth, classification."""
