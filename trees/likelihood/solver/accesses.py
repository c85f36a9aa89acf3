"""Code for reading and writing items of arrays, in a quarter of the instructions of Numba's own.

Numba copies all that it knows of an array (pointers, shape, strides) to memory and back for each item. LLVM removes
that again, so the machine code is the same, but writing, reading and removing it takes long. Numba still handles
everything except plain items, such as slices.
"""

import operator
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import Registry
from numba.core.runtime.context import NRTContext
from numba.np import arrayobj

MEMORY, DATA, SHAPE, STRIDES = 0, 4, 5, 6  # places in Numba's description of an array

_Buffer: Any = types.Buffer  # type: ignore[attr-defined]

accesses = Registry("items of arrays")
"""To be installed in Numba's target, in the place of its own."""


def _names_item(context: Any, array: types.Array, indices: tuple[Any, ...]) -> bool:
    return (
        isinstance(array, types.Array)
        and len(indices) == array.ndim
        and all(isinstance(each, types.Integer) for each in indices)
        and not context.enable_boundscheck
    )


def _address_of(
    context: Any, builder: Any, array: types.Array, value: Any, indices: list[tuple[Any, Any]]
) -> Any:
    """Write the address of an item; indices below zero count from the end."""
    axes = range(array.ndim)
    shape = [builder.extract_value(value, (SHAPE, axis)) for axis in axes]
    strides = [] if array.layout in "CF" else [builder.extract_value(value, (STRIDES, axis)) for axis in axes]
    fixed = [
        arrayobj.fix_integer_index(context, builder, kind, index, size)
        for (kind, index), size in zip(indices, shape, strict=True)
    ]
    return cgutils.get_item_pointer2(
        context, builder, builder.extract_value(value, DATA), shape, strides, array.layout, fixed
    )


def _item_address(context: Any, builder: Any, array: types.Array, value: Any, kind: Any, index: Any) -> Any:
    """Write the address of the item of an index, a number or several; None if the index names no item."""
    several = isinstance(kind, types.BaseTuple)
    kinds = tuple(kind.types) if several else (kind,)
    if not _names_item(context, array, kinds):
        return None
    indices = [builder.extract_value(index, place) for place in range(len(kinds))] if several else [index]
    return _address_of(context, builder, array, value, list(zip(kinds, indices, strict=True)))


def _reading_item(usual: Callable[..., Any]) -> Callable[..., Any]:
    def read_item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, kind = signature.args
        item = _item_address(context, builder, array, arguments[0], kind, arguments[1])
        if item is None:
            return usual(context, builder, signature, arguments)
        return arrayobj.load_item(context, builder, array, item)

    return read_item


accesses.lower(operator.getitem, _Buffer, types.Integer)(_reading_item(arrayobj.getitem_arraynd_intp))
accesses.lower(operator.getitem, _Buffer, types.BaseTuple)(_reading_item(arrayobj.getitem_array_tuple))


@accesses.lower(operator.setitem, _Buffer, types.Any, types.Any)
def _write_item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, kind, given = signature.args
    value, index, new = arguments
    item = _item_address(context, builder, array, value, kind, index)
    if item is None:
        return arrayobj.setitem_array(context, builder, signature, arguments)
    arrayobj.store_item(context, builder, array, context.cast(builder, new, given, array.dtype), item)
    return None


@accesses.lower_getattr(types.Array, "shape")
def _array_shape(context: Any, builder: Any, array: types.Array, value: Any) -> Any:
    return builder.extract_value(value, SHAPE)


_all_owned = NRTContext.get_meminfos


def owned_memory(context: Any, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return the memory that a value owns; replaces `NRTContext.get_meminfos`."""
    if type(kind) is types.Array:
        return [(kind, builder.extract_value(value, MEMORY))]
    model = context._context.data_model_manager[kind]
    if not (model.has_nrt_meminfo() or model.contains_nrt_meminfo()):
        return []
    found: list[tuple[Any, Any]] = _all_owned(context, builder, kind, value)
    return found
