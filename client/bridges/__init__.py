"""Bridges: what other systems send becomes rows of a model."""
