"""Types of columns: plain SQL, with what one database needs of its own."""

from typing import Final

from sqlalchemy import BigInteger, Integer, String

KEY: Final = BigInteger().with_variant(Integer(), "sqlite")
"""Numbers that may outgrow 32 bits. SQLite has one type of integers, and its row ids must be called INTEGER."""


def text_type(length: int | None = None) -> String:
    """Text in the order of its bytes, whatever the language of the database; `checks` bounds its length."""
    return String(length).with_variant(String(collation="C"), "postgresql")
