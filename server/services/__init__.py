"""The services of `quercus.v1`, one a module."""
