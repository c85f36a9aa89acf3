"""Growing trees: in one go from a sample, and incrementally as the log grows."""
