"""Ask the memory for rows before their turn comes.

Rows below a node lie anywhere in their columns, and of a million rows the columns are larger than the caches. A loop
over such rows waits for the memory at each one, unless it has asked for the row some turns before.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

AHEAD = 16  # rows; their memory is requested this many rows ahead


def _fetch_line(_: Any, column: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, number = signature.args
        array = context.make_array(kind)(context, builder, arguments[0])
        first = context.get_constant(types.intp, 0)
        index = [context.cast(builder, arguments[1], number, types.intp)] + [first] * (kind.ndim - 1)
        place = cgutils.get_item_pointer(context, builder, kind, array, index, wraparound=False)  # type: ignore[no-untyped-call]
        address, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [address, flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address], shape)
        to_read, to_keep, data = flag(0), flag(3), flag(1)
        builder.call(prefetch, [builder.bitcast(place, address), to_read, to_keep, data])
        return context.get_dummy_value()

    return types.none(column, row), generate


# in compiled code: ask for ``column[row]``, or the row's first entry; a hint, which changes nothing but the time
fetch = cast(Callable[[NDArray[Any], int], None], intrinsic(_fetch_line))
