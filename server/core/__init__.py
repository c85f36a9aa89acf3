"""Shared by all services: the store behind a writer thread and reader threads, caches, and the change signal."""
