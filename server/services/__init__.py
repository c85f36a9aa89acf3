"""The services of `quercus.v1`, one per module."""
