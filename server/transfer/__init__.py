"""Importing logs, and exporting instances as tables."""
