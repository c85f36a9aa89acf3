"""The rules of a split: gain, dominance, significance."""
