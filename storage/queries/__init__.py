"""Queries: their states, leases, answers and history."""
