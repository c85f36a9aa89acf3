"""The least and the greatest value that each type of number in a message can hold."""

import sys
from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor import FieldDescriptor

WHOLE_NUMBERS: Final[Mapping[int, tuple[int, int]]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
"""The range of each type of C++, which ``int32``, ``sint32`` and ``sfixed32`` share."""
_GREATEST_FLOAT: Final = float.fromhex("0x1.fffffep+127")
NUMBERS: Final[Mapping[int, tuple[float, float]]] = {
    FieldDescriptor.CPPTYPE_FLOAT: (-_GREATEST_FLOAT, _GREATEST_FLOAT),
    FieldDescriptor.CPPTYPE_DOUBLE: (-sys.float_info.max, sys.float_info.max),
}
"""The finite ranges of ``float`` and ``double``."""
