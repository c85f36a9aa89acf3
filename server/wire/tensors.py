"""Conversion of tensors of the Open Inference Protocol, with typed or raw contents, to arrays and back."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.inference import open_inference_pb2 as pb

InputTensor = pb.ModelInferRequest.InferInputTensor
Tensor = InputTensor | pb.ModelInferResponse.InferOutputTensor

BYTES: Final = "BYTES"
_KINDS: Final[dict[str, tuple[str, str]]] = {
    "FP64": ("<f8", "fp64_contents"),
    "FP32": ("<f4", "fp32_contents"),
    "INT64": ("<i8", "int64_contents"),
    "INT32": ("<i4", "int_contents"),
    "INT16": ("<i2", "int_contents"),
    "INT8": ("<i1", "int_contents"),
    "UINT64": ("<u8", "uint64_contents"),
    "UINT32": ("<u4", "uint_contents"),
    "UINT16": ("<u2", "uint_contents"),
    "UINT8": ("<u1", "uint_contents"),
    "BOOL": ("?", "bool_contents"),
}
"""Type of the elements in raw contents, and field of typed contents, by datatype."""

_LENGTH: Final = struct.Struct("<I")


def decode_tensor(tensor: Tensor, raw: bytes | None, field: str) -> list[bytes] | NDArray[Any]:
    """Return the elements of a tensor, flat: texts as bytes, numbers and booleans as an array of their type.

    Parameters
    ----------
    tensor : the tensor.
    raw : raw contents of the tensor; None if they are typed.
    field : name of the field in errors.

    Raises
    ------
    InvalidInput
        If datatype, shape or length do not fit.
    """
    if tensor.datatype != BYTES and tensor.datatype not in _KINDS:
        known = ", ".join((BYTES, *_KINDS))
        raise InvalidInput(f"{field}.datatype", f"is {shown(tensor.datatype)}, must be one of {known}")
    for i, size in enumerate(tensor.shape):
        if size < 1:
            raise InvalidInput(f"{field}.shape[{i}]", f"is {size}, must be at least 1")
    count = math.prod(tensor.shape)
    if raw is not None:
        found: Any = (
            _split_texts(raw, field) if tensor.datatype == BYTES else _raw_numbers(tensor, raw, field)
        )
    else:
        name = str(contents_field(tensor.datatype))
        found = list(getattr(tensor.contents, name))
        if not found and tensor.contents.ListFields():
            other = tensor.contents.ListFields()[0][0].name
            raise InvalidInput(f"{field}.contents", f"has {other}; {tensor.datatype} must be in {name}")
    if len(found) != count:
        shape = list(tensor.shape)
        raise InvalidInput(f"{field}.contents", f"has {len(found)} elements, its shape {shape} needs {count}")
    if tensor.datatype == BYTES:
        return list(found)
    try:
        return np.array(found, dtype=_KINDS[tensor.datatype][0])
    except OverflowError as error:  # INT8 and INT16 share a field with INT32
        raise InvalidInput(f"{field}.contents", f"does not fit into {tensor.datatype} ({error})") from None


def _raw_numbers(tensor: Tensor, raw: bytes, field: str) -> NDArray[Any]:
    kind = np.dtype(_KINDS[tensor.datatype][0])
    if len(raw) % kind.itemsize:
        raise InvalidInput(
            f"{field}.contents",
            f"has {len(raw)} raw bytes, which are not {tensor.datatype} of {kind.itemsize} bytes each",
        )
    return np.frombuffer(raw, dtype=kind)


def _split_texts(raw: bytes, field: str) -> list[bytes]:
    """Split texts, each of which follows its length."""
    texts: list[bytes] = []
    at = 0
    while at < len(raw):
        if at + _LENGTH.size > len(raw):
            raise InvalidInput(f"{field}.contents", f"ends within the length of text {len(texts)}")
        (size,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if at + size > len(raw):
            raise InvalidInput(
                f"{field}.contents",
                f"has {size} bytes as the length of text {len(texts)}, {len(raw) - at} are left",
            )
        texts.append(raw[at : at + size])
        at += size
    return texts


def join_texts(texts: Sequence[bytes]) -> bytes:
    """Return texts as raw contents, each after its length."""
    return b"".join(_LENGTH.pack(len(each)) + each for each in texts)


def contents_field(datatype: str) -> str | None:
    """Return the field of typed contents for a datatype; None if there is no such datatype."""
    if datatype == BYTES:
        return "bytes_contents"
    return _KINDS[datatype][1] if datatype in _KINDS else None


def encode_tensor(
    response: pb.ModelInferResponse,
    name: str,
    datatype: str,
    values: NDArray[Any] | Sequence[bytes],
    raw: bool,
) -> None:
    """Add an output to a response.

    Parameters
    ----------
    response : response to which the tensor is added.
    name, datatype : name and type of the tensor.
    values : an array with the shape of the tensor, or texts as bytes, one for each row.
    raw : whether the contents are raw.
    """
    shape = values.shape if isinstance(values, np.ndarray) else (len(values),)
    tensor = response.outputs.add(name=name, datatype=datatype, shape=shape)
    if isinstance(values, np.ndarray):
        kind, field = _KINDS[datatype]
        if raw:
            response.raw_output_contents.append(np.ascontiguousarray(values, dtype=kind).tobytes())
        else:
            getattr(tensor.contents, field).extend(values.ravel().tolist())
    elif raw:
        response.raw_output_contents.append(join_texts(values))
    else:
        tensor.contents.bytes_contents.extend(values)
