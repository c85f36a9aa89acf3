"""Conversion between messages and values of the domain, resource names, limits, and statuses of errors."""
