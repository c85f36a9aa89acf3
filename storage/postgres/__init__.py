"""Support for PostgreSQL."""
