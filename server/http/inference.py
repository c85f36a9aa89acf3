"""The Open Inference Protocol by HTTP: paths below ``/v2``, tensors as JSON or, with its extension, as bytes.

https://github.com/kserve/open-inference-protocol describes requests and responses; tensors as bytes are Triton's
extension ``binary_tensor_data``. Each path calls a method of the same protocol by gRPC.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from quercus.belief.errors import InvalidInput, shown
from quercus.inference import open_inference_pb2 as pb
from quercus.server.http.calls import ClientLeft, Failure, Gate, HttpContext, invalid_request
from quercus.server.http.connect import (
    HTTP_METHODS,
    answer_headers,
    error_body,
    error_response,
    length_of,
    timeout_of,
)
from quercus.server.wire.json_messages import REQUEST, EncodedMessage, json_text
from quercus.server.wire.limits import INLINE_JSON_BYTES
from quercus.server.wire.tensors import BYTES, contents_field, decode_tensor, join_texts

ROOT: Final = "/v2"
SERVICE: Final = "/inference.GRPCInferenceService"
EXTENSION: Final = "binary_tensor_data"
HEADER_LENGTH: Final = "inference-header-content-length"
"""Header with the length of the JSON, which precedes the tensors as bytes."""

SIZE, AS_BYTES, ALL_AS_BYTES = "binary_data_size", "binary_data", "binary_data_output"
"""Parameters of the extension: the size of a tensor as bytes, whether an output is wanted as bytes, or all outputs."""

_TYPES: Final = ("application/json", "application/octet-stream")
_FIXED: Final = {
    ROOT: "ServerMetadata",
    f"{ROOT}/health/live": "ServerLive",
    f"{ROOT}/health/ready": "ServerReady",
}
_MODEL: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(/ready|/infer)?")
_OF_MODEL: Final = {None: "ModelMetadata", "/ready": "ModelReady", "/infer": "ModelInfer"}
_REQUEST_FIELDS: Final = ("id", "parameters", "inputs", "outputs")
_INPUT_FIELDS: Final = ("name", "shape", "datatype", "parameters", "data")
_OUTPUT_FIELDS: Final = ("name", "parameters")


@dataclass(frozen=True)
class InferencePath:
    """A path and the method that it calls.

    Attributes
    ----------
    name : name of the method.
    model, version : model and version in the path; empty if there are none.
    """

    name: str
    model: str = ""
    version: str = ""

    @property
    def verbs(self) -> tuple[str, ...]:
        """The HTTP methods by which it is called."""
        return ("POST",) if self.name == "ModelInfer" else ("GET", "HEAD")

    @property
    def request(self) -> bytes:
        """The request of a method whose HTTP request has no body."""
        kind = GetMessageClass(HTTP_METHODS[f"{SERVICE}/{self.name}"].descriptor.input_type)
        of_model = {"name": self.model, "version": self.version} if self.model else {}
        return kind(**of_model).SerializeToString()


def path_of(path: str) -> InferencePath | None:
    """Return the method that a path calls; None if there is none.

    Examples
    --------
    >>> path_of("/v2/models/wine/versions/7/infer").name, path_of("/v2/health/live").name, path_of("/v2/models")
    ('ModelInfer', 'ServerLive', None)
    """
    if path in _FIXED:
        return InferencePath(_FIXED[path])
    if (found := _MODEL.fullmatch(path)) is None:
        return None
    return InferencePath(_OF_MODEL[found[3]], found[1], found[2] or "")


async def answer_inference(
    gate: Gate, path: InferencePath, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer one request below ``/v2``."""
    headers = Headers(scope=scope)
    context: HttpContext | None = None
    wishes = _Wishes()
    try:
        is_infer = path.name == "ModelInfer"
        json_length = _read_head(headers) if is_infer else None
        context = HttpContext(scope, timeout_of(headers))
        data = await gate.call(
            f"{SERVICE}/{path.name}",
            context,
            receive,
            lambda body: InferRequest(body, path, json_length, wishes),
            None if is_infer else path.request,
            length_of(headers),
        )
        if is_infer and len(data) > INLINE_JSON_BYTES:
            response = await asyncio.to_thread(_infer_response, data, wishes)
        elif is_infer:
            response = _infer_response(data, wishes)
        else:
            response = _said(path, HTTP_METHODS[f"{SERVICE}/{path.name}"].response.FromString(data))
        response.headers.update(answer_headers(context))
    except ClientLeft:
        return
    except Failure as failure:
        body = {"error": failure.message, **error_body(failure)}  # clients of the protocol read `error`
        response = error_response(failure, answer_headers(context), body)
    await response(scope, receive, send)


def _read_head(headers: Headers) -> int | None:
    """Return the length of the JSON in a request; None if all of it is JSON."""
    kind = headers.get("content-type", _TYPES[0]).partition(";")[0].strip().lower()
    if kind not in _TYPES:
        raise invalid_request(f"content-type: is {kind[:60]!r}, must be {' or '.join(_TYPES)}", 415)
    if headers.get("content-encoding", "identity") != "identity":
        raise invalid_request("content-encoding: only identity is read", 415)
    given = headers.get(HEADER_LENGTH)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 12):
        raise invalid_request(f"{HEADER_LENGTH}: is {given[:20]!r}, must be the number of bytes of the JSON")
    return int(given)


def _said(path: InferencePath, message: Any) -> Response:
    """Return the response of a method without tensors."""
    match path.name:
        case "ServerMetadata":
            body = {"name": message.name, "version": message.version, "extensions": [EXTENSION]}
        case "ServerLive":
            body = {"live": message.live}
        case "ServerReady":
            body = {"ready": message.ready}
        case "ModelReady":
            body = {"name": path.model, "ready": message.ready}
        case _:
            body = {
                "name": message.name,
                "versions": list(message.versions),
                "platform": message.platform,
                "inputs": list(map(_tensor_head, message.inputs)),
                "outputs": list(map(_tensor_head, message.outputs)),
            }
    is_yes = getattr(message, "live", True) and getattr(message, "ready", True)
    return JSONResponse(body, 200 if is_yes else 503)


def _tensor_head(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


# Requests


@dataclass
class _Wishes:
    """The outputs that are wanted as bytes.

    Attributes
    ----------
    all_as_bytes : default for outputs that are not in `of_output`.
    of_output : whether single outputs are wanted as bytes.
    """

    all_as_bytes: bool = False
    of_output: dict[str, bool] = field(default_factory=dict)

    def as_bytes(self, name: str) -> bool:
        """Return whether an output is wanted as bytes."""
        return self.of_output.get(name, self.all_as_bytes)


class InferRequest(EncodedMessage):
    """A request for inference: JSON, followed by the tensors as bytes."""

    path: InferencePath
    json_length: int | None
    wishes: _Wishes

    def __new__(
        cls, body: bytes, path: InferencePath, json_length: int | None, wishes: _Wishes
    ) -> InferRequest:
        """Return a request for the model of a path; `wishes` receives the outputs that it wants as bytes."""
        made = super().__new__(cls, body)
        made.path, made.json_length, made.wishes = path, json_length, wishes
        return made

    def read_as(self, kind: type[Message]) -> Message:
        """Return the message.

        Raises
        ------
        InvalidInput
            If it is invalid; the error names the field.
        """
        end = len(self) if self.json_length is None else self.json_length
        if end > len(self):
            raise InvalidInput(HEADER_LENGTH, f"is {end}, but the body has {len(self)} bytes")
        try:
            asked = json.loads(json_text(self[:end]))
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(REQUEST, f"cannot be read ({error})") from None
        fields = _object(asked, REQUEST, _REQUEST_FIELDS)
        request = pb.ModelInferRequest(model_name=self.path.model, model_version=self.path.version)
        request.id = _text(fields.get("id", ""), "id")
        parameters = _object(fields.get("parameters", {}), "parameters")
        self.wishes.all_as_bytes = parameters.pop(ALL_AS_BYTES, False) is True
        _read_parameters(parameters, request.parameters, "parameters")
        blobs = _Blobs(self[end:])
        for i, given in enumerate(_list(fields.get("inputs"), "inputs")):
            _read_input(_object(given, f"inputs[{i}]", _INPUT_FIELDS), request, blobs, f"inputs[{i}]")
        blobs.check_end()
        for i, given in enumerate(_list(fields.get("outputs", []), "outputs")):
            wanted = _object(given, f"outputs[{i}]", _OUTPUT_FIELDS)
            name = request.outputs.add(name=_text(wanted.get("name"), f"outputs[{i}].name")).name
            parameters = _object(wanted.get("parameters", {}), f"outputs[{i}].parameters")
            if AS_BYTES in parameters:
                self.wishes.of_output[name] = parameters[AS_BYTES] is True
        return request


class _Blobs:
    """The bytes after the JSON, from which each tensor takes its part."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: Any, place: str) -> bytes:
        left = len(self._data) - self._at
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= left:
            raise InvalidInput(place, f"is {shown(size)}, but {left} bytes are left after the JSON")
        self._at += size
        return self._data[self._at - size : self._at]

    def check_end(self) -> None:
        if self._at < len(self._data):
            left = len(self._data) - self._at
            raise InvalidInput(REQUEST, f"has {left} bytes after the JSON that no input takes ({SIZE})")


def _read_input(fields: dict[str, Any], request: pb.ModelInferRequest, blobs: _Blobs, place: str) -> None:
    tensor = request.inputs.add(name=_text(fields.get("name"), f"{place}.name"))
    tensor.datatype = _text(fields.get("datatype"), f"{place}.datatype")
    for size in _list(fields.get("shape"), f"{place}.shape"):
        _fill(tensor.shape, [size], f"{place}.shape")
    parameters = _object(fields.get("parameters", {}), f"{place}.parameters")
    if SIZE in parameters:
        if "data" in fields:
            raise InvalidInput(f"{place}.data", f"is given, but so is {SIZE}: send only one of the two")
        request.raw_input_contents.append(blobs.take(parameters[SIZE], f"{place}.parameters.{SIZE}"))
        return
    name = contents_field(tensor.datatype)
    if name is None:
        raise InvalidInput(
            f"{place}.datatype", f"is {shown(tensor.datatype)}, which is not a datatype of the protocol"
        )
    values = _flat(_list(fields.get("data"), f"{place}.data"), len(tensor.shape), f"{place}.data")
    if tensor.datatype == BYTES:
        values = [_text(value, f"{place}.data[{i}]").encode() for i, value in enumerate(values)]
    elif tensor.datatype.startswith("FP"):
        values = [float("nan") if value is None else value for value in values]
    _fill(getattr(tensor.contents, name), values, f"{place}.data")


def _flat(values: list[Any], dimensions: int, place: str) -> list[Any]:
    """Return the elements of nested lists, row by row."""
    for _ in range(dimensions - 1):
        if not any(isinstance(value, list) for value in values):
            break
        if not all(isinstance(value, list) for value in values):
            raise InvalidInput(place, "has lists and values side by side")
        values = [value for row in values for value in row]
    return values


def _fill(contents: Any, values: Sequence[Any], place: str) -> None:
    try:
        contents.extend(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(place, f"cannot be read ({error})") from None


def _read_parameters(given: dict[str, Any], parameters: Any, place: str) -> None:
    for name, value in given.items():
        kind = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}.get(
            type(value)
        )
        if kind is None:
            raise InvalidInput(f"{place}[{shown(name)}]", "must be a truth value, a number or a text")
        try:
            setattr(
                parameters[_text(name, place)], kind, _text(value, place) if kind == "string_param" else value
            )
        except (ValueError, OverflowError) as error:
            raise InvalidInput(f"{place}[{shown(name)}]", f"cannot be read ({error})") from None


def _object(value: Any, place: str, names: Sequence[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(place, f"is {shown(value)}, must be a JSON object")
    for name in value if names is not None else ():
        if name not in (names or ()):
            raise InvalidInput(
                f"{place}.{name[:60]}", f"is not known; an object here has {', '.join(names or ())}"
            )
    return dict(value)


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(place, "is missing" if value is None else f"is {shown(value)}, must be a list")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(place, "is missing" if value is None else f"is {shown(value)}, must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(place, "has half of a surrogate pair") from None
    return value


# Responses


def _infer_response(data: bytes, wishes: _Wishes) -> Response:
    said = pb.ModelInferResponse.FromString(data)
    blobs: list[bytes] = []
    outputs = []
    for i, tensor in enumerate(said.outputs):
        raw = said.raw_output_contents[i] if said.raw_output_contents else None
        values: Any = decode_tensor(tensor, raw, f"outputs[{i}]")
        output = _tensor_head(tensor)
        if wishes.as_bytes(tensor.name):
            blob = join_texts(values) if tensor.datatype == BYTES else np.ascontiguousarray(values).tobytes()
            output["parameters"] = {SIZE: len(blob)}
            blobs.append(blob)
        elif tensor.datatype == BYTES:
            output["data"] = [text.decode() for text in values]
        else:
            output["data"] = values.tolist()
        outputs.append(output)
    body: dict[str, Any] = {"model_name": said.model_name, "model_version": said.model_version}
    if said.id:
        body["id"] = said.id
    body["parameters"] = {
        name: getattr(value, str(value.WhichOneof("parameter_choice")))
        for name, value in said.parameters.items()
    }
    body["outputs"] = outputs
    head = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if not blobs:
        return Response(head, media_type="application/json")
    sent = {HEADER_LENGTH.title(): str(len(head))}
    return Response(b"".join([head, *blobs]), headers=sent, media_type="application/octet-stream")
