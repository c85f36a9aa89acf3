"""Alembic migrations, part of the package."""
