"""Frames of any library: pandas, polars, others that `narwhals` supports, and objects with Arrow's C interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import narwhals as nw


def frame_of(given: object) -> nw.DataFrame[Any] | None:
    """Return a frame of any library as a narwhals frame; ``None`` if the object is not a frame.

    Raises
    ------
    ValueError
        For a frame that cannot be read, such as one that is not computed yet.
    """
    is_arrow = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")
    is_arrow &= not (hasattr(given, "dtype") or hasattr(given, "type"))  # a single column
    if not (is_arrow or hasattr(type(given), "columns")):  # narwhals takes 50 ms to import
        return None
    import narwhals as nw  # noqa: PLC0415

    try:
        found = nw.from_native(given, pass_through=True)
        if isinstance(found, nw.LazyFrame):
            raise ValueError("the frame is not computed yet: call its collect() first")
        if isinstance(found, nw.DataFrame):
            return found
        if not is_arrow:
            return None
        given = _arrow_table(given)
        return nw.from_native(given)
    except nw.exceptions.DuplicateError:
        columns: Any = getattr(given, "column_names", None) or getattr(given, "columns", ())
        names = [str(name) for name in columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two columns of the frame have the name {', '.join(map(repr, twice))}") from None


def _arrow_table(given: object) -> Any:
    """Return an object with Arrow's C interface, such as a batch or a reader of batches, as a table."""
    try:
        import pyarrow  # noqa: PLC0415 - an optional package
    except ModuleNotFoundError:
        raise ValueError("Arrow needs pyarrow: pip install pyarrow") from None
    try:
        return pyarrow.table(given)
    except (pyarrow.ArrowException, TypeError) as error:
        raise ValueError(f"a {type(given).__name__} is not an Arrow table: {error}") from None
