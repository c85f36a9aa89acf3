"""Growing trees: at once from a sample, and incrementally as the log grows."""
