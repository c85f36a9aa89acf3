"""Types of columns that differ between databases."""

from typing import Final

from sqlalchemy import BigInteger, Integer, String

KEY: Final = BigInteger().with_variant(Integer(), "sqlite")
"""Keys, of 64 bits. SQLite assigns keys only if the column's type is called INTEGER, which has 64 bits there."""


def text_type(length: int | None = None) -> String:
    """Return a type of text that sorts by bytes, whatever the locale of the database."""
    return String(length).with_variant(String(collation="C"), "postgresql")
