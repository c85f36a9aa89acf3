"""The memory of an object: its arrays, and all other objects reachable only from it."""

import gc
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np

SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)
"""Code, which all objects share."""


def held_bytes(root: object) -> int:
    """Return the bytes of an object and of all that it refers to, code left out. What two hold counts once.

    Unlike the memory of a process it does not depend on what the allocator and the operating system do with freed
    memory, so that a test may compare numbers of single runs.

    Examples
    --------
    >>> array = np.zeros(1_000)
    >>> held_bytes([array[:10], array[10:]]) - held_bytes([]) in range(8_000, 8_500)
    True
    """
    seen: set[int] = set()
    waiting, found = [root], 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, SHARED):
            continue
        seen.add(id(each))
        found += sys.getsizeof(each)
        if isinstance(each, np.ndarray):
            if each.base is not None:
                waiting.append(each.base)
            continue  # its size has its numbers where they are its own
        waiting.extend(gc.get_referents(each))
    return found
