"""Frames of any library: pandas, polars, Arrow tables, and all others that `narwhals` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import narwhals as nw


def frame_of(given: object) -> nw.DataFrame[Any] | None:
    """Return a frame of any library as one of narwhals; ``None``: it is none.

    Raises
    ------
    ValueError
        For a frame that cannot be read, as one that is not computed yet.
    """
    if not hasattr(type(given), "columns"):  # narwhals takes 50 ms to import
        return None
    import narwhals as nw  # noqa: PLC0415

    if type(given).__name__ == "RecordBatch":
        import pyarrow  # noqa: PLC0415 - it is imported already: it made the batch

        given = pyarrow.Table.from_batches([given])
    try:
        found = nw.from_native(given, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(given, "columns", ())]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two columns of the frame have the name {', '.join(map(repr, twice))}") from None
    if isinstance(found, nw.LazyFrame):
        raise ValueError("the frame is not computed yet: call its collect() first")
    return found if isinstance(found, nw.DataFrame) else None
