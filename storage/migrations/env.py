"""Runs the migrations on the connection of `storage.migrate`, within its transaction.

The docstring of `storage.migrate` says how to change the schema.
"""

from alembic import context

from quercus.storage.schema import REVISION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=REVISION_TABLE,
    # SQLite cannot alter most things in place; Alembic then copies the table.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
