"""Conversion for the Open Inference Protocol: inputs to rows, and the response of Classify to outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.inference import open_inference_pb2 as pb
from quercus.server.wire.limits import MessageLimits
from quercus.server.wire.rows import UnseenCounter, column_faults, value_ranges
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.server.wire.tensors import BYTES, InputTensor, decode_tensor, encode_tensor
from quercus.specification.parameters import MAX_VALUES
from quercus.specification.values import canonical_cell, number_of
from quercus.specification.written_labels import write_set
from quercus.trees import Range, UncertainValues
from quercus.v1 import classify_pb2, values_pb2

OUTPUTS: Final = {
    "label": ("BYTES", False),
    "label_index": ("INT64", False),
    "probabilities": ("FP64", True),
    "belief": ("FP64", True),
    "plausibility": ("FP64", True),
    "set": ("BOOL", True),
    "mass": ("BYTES", False),
}
"""Datatype of each output, and whether it has a column for each class."""

ON_REQUEST: Final = "mass"
_MISSING: Final = frozenset({"", "?"})


def describe_model(response: pb.ModelMetadataResponse, schema: ModelSchema) -> pb.ModelMetadataResponse:
    """Add the inputs and outputs of a model to its metadata."""
    for column in schema.columns:
        datatype = "FP64" if column.values is None else BYTES
        response.inputs.add(name=column.name, datatype=datatype, shape=[-1])
    for name, (datatype, is_wide) in OUTPUTS.items():
        response.outputs.add(name=name, datatype=datatype, shape=[-1, schema.frame.size] if is_wide else [-1])
    return response


def wanted_outputs(request: pb.ModelInferRequest) -> list[str]:
    """Return the names of the requested outputs.

    Raises
    ------
    InvalidInput
        If there is no such output, or it is requested twice.
    """
    names = [each.name for each in request.outputs]
    for i, name in enumerate(names):
        if name not in OUTPUTS:
            raise InvalidInput(f"outputs[{i}].name", f"is {shown(name)}, must be one of {', '.join(OUTPUTS)}")
        if name in names[:i]:
            raise InvalidInput(f"outputs[{i}].name", f"is {shown(name)}, the same as an earlier one")
    return names or [name for name in OUTPUTS if name != ON_REQUEST]


def decode_inputs(
    request: pb.ModelInferRequest, schema: ModelSchema, sizes: MessageLimits
) -> tuple[UncertainValues, Sequence[values_pb2.UnseenNames]]:
    """Return the rows of a request (a tensor for each attribute, or one matrix), and counts of unknown names.

    Raises
    ------
    InvalidInput
        If a tensor is invalid; the error names the tensor, the row and the bound.
    """
    inputs, raw = request.inputs, request.raw_input_contents
    if not inputs:
        raise InvalidInput(
            "inputs", "is empty: send a tensor for each attribute, or one of rows x attributes"
        )
    if raw and len(raw) != len(inputs):
        raise InvalidInput(
            "raw_input_contents", f"has {len(raw)} entries, must have one for each of {len(inputs)} inputs"
        )
    if raw:
        for i, tensor in enumerate(inputs):
            if tensor.HasField("contents"):
                raise InvalidInput(
                    f"inputs[{i}].contents", "is given, but the contents are raw: send only one of the two"
                )
    for i, tensor in enumerate(inputs):
        if tensor.shape and not 1 <= tensor.shape[0] <= sizes.max_batch_rows:
            raise InvalidInput(
                f"inputs[{i}].shape[0]",
                f"is {tensor.shape[0]}, must be 1 to {sizes.max_batch_rows} rows (max_batch_rows)",
            )
    width = len(schema.columns)
    first = inputs[0]
    names = {column.name for column in schema.columns}
    if len(inputs) == 1 and len(first.shape) == 2 and (first.shape[1] > 1 or first.name not in names):
        return _decode_matrix(first, raw[0] if raw else None, schema, width), ()
    return _decode_columns(request, schema)


def _decode_matrix(
    tensor: InputTensor, raw: bytes | None, schema: ModelSchema, width: int
) -> UncertainValues:
    field = f"inputs[{shown(tensor.name)}]"
    if tensor.datatype not in {"FP64", "FP32"}:
        raise InvalidInput(f"{field}.datatype", f"is {shown(tensor.datatype)}, a matrix must be FP64 or FP32")
    if tensor.shape[1] != width:
        raise InvalidInput(f"{field}.shape[1]", f"is {tensor.shape[1]}, the model has {width} attributes")
    flat = decode_tensor(tensor, raw, field)
    values = np.array(flat, dtype=np.float64).reshape(-1, width)
    for k, column in enumerate(schema.columns):
        _check_rows(values[:, k], np.arange(len(values)), column, field)
    values[np.isnan(values)] = np.nan
    return UncertainValues(values, {})


def _check_rows(
    values: NDArray[np.float64], rows: NDArray[np.intp], column: AttributeColumn, field: str
) -> None:
    bad, why = column_faults(values[rows], column)
    if bad.any():
        row = int(rows[np.argmax(bad)])
        raise InvalidInput(
            field, f"is {float(values[row])!r} in row {row}, attribute {shown(column.name)}, {why}"
        )


def _decode_columns(
    request: pb.ModelInferRequest, schema: ModelSchema
) -> tuple[UncertainValues, Sequence[values_pb2.UnseenNames]]:
    places = {column.name: k for k, column in enumerate(schema.columns)}
    raw = request.raw_input_contents
    values: NDArray[np.float64] | None = None
    parts: dict[tuple[int, int], tuple[Range, ...]] = {}
    seen: set[str] = set()
    unseen = UnseenCounter()
    absent = places.keys() - {tensor.name for tensor in request.inputs}
    for i, tensor in enumerate(request.inputs):
        field = f"inputs[{shown(tensor.name)}]"
        if tensor.name not in places:
            if absent:  # it may be misspelt; if every attribute has a tensor, others are ignored
                raise InvalidInput(
                    f"inputs[{i}].name",
                    f"is {shown(tensor.name)}, must be an attribute: {', '.join(places)[:400]}",
                )
            continue
        if tensor.name in seen:
            raise InvalidInput(f"inputs[{i}].name", f"is {shown(tensor.name)}, the same as an earlier one")
        seen.add(tensor.name)
        if len(tensor.shape) not in {1, 2} or (len(tensor.shape) == 2 and tensor.shape[1] != 1):
            raise InvalidInput(f"{field}.shape", f"is {list(tensor.shape)}, must be [n] or [n, 1]")
        if values is None:
            values = np.full((tensor.shape[0], len(schema.columns)), np.nan)
        if tensor.shape[0] != len(values):
            raise InvalidInput(
                f"{field}.shape[0]", f"is {tensor.shape[0]}, the tensors before have {len(values)} rows"
            )
        k = places[tensor.name]
        found = decode_tensor(tensor, raw[i] if raw else None, field)
        if isinstance(found, np.ndarray) and schema.columns[k].values is None:
            values[:, k] = found
        elif isinstance(found, np.ndarray):
            values[:, k] = _codes_of_numbers(found, schema.columns[k], field)
        else:
            _read_texts(found, schema.columns[k], values[:, k], k, parts, field)
        if schema.columns[k].values is not None:
            texts = [str(cell).encode() for cell in found] if isinstance(found, np.ndarray) else found
            of_column = {row: ranges for (row, at), ranges in parts.items() if at == k}
            _count_unseen(texts, schema.columns[k], values[:, k], of_column, unseen)
    if values is None or absent:
        names = ", ".join(shown(name) for name in places if name in absent)
        raise InvalidInput(
            "inputs",
            f"have no {names[:400]}: send a tensor of ? or NaN for an attribute whose values are not known",
        )
    for k, column in enumerate(schema.columns):
        certain = np.array([(row, k) not in parts for row in range(len(values))])
        if column.values is not None:  # an unknown name is not a fault
            certain &= values[:, k] != column.most
        _check_rows(values[:, k], np.flatnonzero(certain), column, f"inputs[{shown(column.name)}]")
    values[np.isnan(values)] = np.nan  # all NaN with the same bits
    return UncertainValues(values, parts), unseen.messages()


def _count_unseen(
    texts: Sequence[bytes],
    column: AttributeColumn,
    values: NDArray[np.float64],
    parts: Mapping[int, Sequence[Range]],
    unseen: UnseenCounter,
) -> None:
    """Count the rows of a nominal column that have a name that the model does not know."""
    sets = [row for row, ranges in parts.items() if ranges[-1][0] == column.most]
    for row in sorted([*np.flatnonzero(values == column.most).tolist(), *sets]):
        text = texts[row].decode("utf-8").strip()
        names = [name.strip() for name in text.split("|")] if row in parts else [text]
        strange = [name for name in names if column.index_of(name) is None] or names
        unseen.count_row(column.name, *strange, beyond=column.fills_bucket)


def _codes_of_numbers(numbers: NDArray[Any], column: AttributeColumn, field: str) -> list[float]:
    """Return the indices of the nominal values that numbers or booleans (n,) stand for, as ``101.0`` for ``101``."""
    codes = []
    for row, number in enumerate(numbers):
        try:
            name = canonical_cell(number)
        except ValueError as error:
            raise InvalidInput(f"{field}[{row}]", f"is of a nominal attribute: {error}") from None
        index = None if name is None else column.index_of(name)
        codes.append(math.nan if name is None else float(column.most if index is None else index))
    return codes


def _read_texts(
    texts: Sequence[bytes],
    column: AttributeColumn,
    values: NDArray[np.float64],
    k: int,
    parts: dict[tuple[int, int], tuple[Range, ...]],
    field: str,
) -> None:
    """Read the texts of a column, in the forms of files: a value, ``?``, ``red|green``, ``2..3``."""
    for row, data in enumerate(texts):
        try:
            text = data.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{field}[{row}]", f"is {shown(data)}, which is not UTF-8 at byte {error.start}"
            ) from None
        if text in _MISSING and text not in column.index:
            continue
        if column.values is None:
            found = _number_or_range(text, f"{field}[{row}]")
            if isinstance(found, tuple):
                parts[row, k] = (found,)
            else:
                values[row] = found
        elif (index := column.index_of(text)) is not None or "|" not in text:
            values[row] = column.most if index is None else index
        else:
            names = text.split("|")
            if len(names) > MAX_VALUES:
                raise InvalidInput(
                    f"{field}[{row}]", f"is one of {len(names)} values, at most {MAX_VALUES} are allowed"
                )
            parts[row, k] = value_ranges(names, column)


def _number_or_range(text: str, field: str) -> float | Range:
    first, dots, last = text.partition("..")
    try:
        low, high = number_of(first), number_of(last if dots else first)
    except ValueError:
        low = high = None
    if low is None or high is None:
        raise InvalidInput(field, f"is {shown(text)}, must be a number, ?, or a range as 2..3")
    if low > high:
        raise InvalidInput(field, f"is {shown(text)}, must be a range in rising order")
    return (low, high) if dots else low


def encode_outputs(
    response: pb.ModelInferResponse,
    said: classify_pb2.ClassifyResponse,
    names: Sequence[str],
    unseen: Sequence[values_pb2.UnseenNames],
    *,
    raw: bool,
) -> pb.ModelInferResponse:
    """Add the requested outputs to a response, and the names in the request that the model does not know."""
    classes = list(said.classes)
    made: dict[str, Any] = {
        "label": lambda: [classes[c].encode() for c in said.class_indices],
        "label_index": lambda: np.array(said.class_indices, dtype=np.int64),
        "probabilities": lambda: _to_table(said.theta, len(classes)),
        "belief": lambda: _to_table(said.belief, len(classes)),
        "plausibility": lambda: _to_table(said.plausibility, len(classes)),
        "set": lambda: np.array(
            [[mask >> c & 1 for c in range(len(classes))] for mask in said.class_sets], dtype=bool
        ),
        "mass": lambda: _mass_texts(said),
    }
    for name in names:
        encode_tensor(response, name, OUTPUTS[name][0], made[name](), raw)
    response.parameters["classes"].string_param = json.dumps(classes, ensure_ascii=False)
    response.parameters["as_of"].int64_param = said.as_of
    response.parameters["tree_version"].int64_param = said.tree_version
    if unseen:
        told = [
            {
                "attribute": each.attribute,
                "rows": each.rows,
                "names": each.names,
                "examples": list(each.examples),
                "rows_beyond": each.rows_beyond,
            }
            for each in unseen
        ]
        response.parameters["unseen"].string_param = json.dumps(told, ensure_ascii=False)
    return response


def _to_table(values: Any, width: int) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64).reshape(-1, width)


def _mass_texts(said: classify_pb2.ClassifyResponse) -> list[bytes]:
    """Return the mass function of each row as JSON; keys are the classes of a focal set, separated by ``|``."""
    if not said.mass_indices:
        raise InvalidInput("outputs", "name mass, but this model has no mass functions")
    texts = []
    for mass in said.masses:
        by_set = {
            write_set(name for c, name in enumerate(said.classes) if focal >> c & 1): value
            for focal, value in zip(mass.focal_sets, mass.masses, strict=True)
        }
        texts.append(json.dumps(by_set, ensure_ascii=False).encode())
    return [texts[index] for index in said.mass_indices]
