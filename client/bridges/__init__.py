"""Bridges between models and other systems."""
