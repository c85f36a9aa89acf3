"""Evidential likelihood and the intervals of entropy that it allows."""
