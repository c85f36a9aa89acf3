"""Support for SQLite."""
