"""Return of memory to the system by computing processes: large arrays are kept apart from the heap."""

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1  # numbers of <malloc.h>
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 256 * 1024
TRIM_BYTES: Final = 1024 * 1024


def keep_small() -> bool:
    """Make the C library map each array of 256 KiB or more separately, so that freeing it returns its memory.

    By itself glibc raises that size to what was freed last, up to 32 MiB. Arrays of a level of the tree, which live
    for milliseconds, then leave holes in a heap that cannot shrink: 54 MB of 117 after a million rows. What a freed
    array costs again is the clearing of its pages, some hundredths of the time of growth.

    Returns
    -------
    bool
        Whether the C library took both settings; others than glibc do without.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # musl has no mallopt, Windows no such library
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)) and bool(mallopt(M_TRIM_THRESHOLD, TRIM_BYTES))
