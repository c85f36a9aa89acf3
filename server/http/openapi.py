"""The OpenAPI 3.1 description of the HTTP port, made from the descriptors of the protocol and its comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import grpc
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from quercus import __version__
from quercus.server.gate.guard import OPEN_PREFIX
from quercus.server.gate.rpcs import RPCS
from quercus.server.http.connect import (
    HTTP_METHODS,
    HTTP_STATUS,
    JSON_TYPE,
    LINES_TYPE,
    PROTO_TYPE,
    HttpMethod,
    code_word,
)
from quercus.server.http.health import LIVE, READY
from quercus.v1.calls import is_reading

Json = dict[str, Any]

TEXT: Final = "text/plain"
_TITLE: Final = (
    "Streaming active learning with evidential decision trees. Calls follow the Connect protocol "
    "(https://connectrpc.com/docs/protocol); streams of responses are lines of JSON."
)
_SHORT: Final = "quercus.v1."
_NUMBER: Final[Json] = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_WHOLE: Final[Json] = {
    "type": "string",
    "pattern": "^-?[0-9]{1,19}$",
    "description": "A whole number of 64 bits.",
}
_T: Final = FieldDescriptor
_LONG_UNSIGNED: Final = _WHOLE | {"pattern": "^[0-9]{1,20}$"}
_SHORT_SIGNED: Final[Json] = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_SHORT_UNSIGNED: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_SCALARS: Final[Mapping[int, Json]] = {
    **dict.fromkeys((_T.TYPE_DOUBLE, _T.TYPE_FLOAT), _NUMBER),
    **dict.fromkeys((_T.TYPE_INT64, _T.TYPE_SINT64, _T.TYPE_SFIXED64), _WHOLE),
    **dict.fromkeys((_T.TYPE_UINT64, _T.TYPE_FIXED64), _LONG_UNSIGNED),
    **dict.fromkeys((_T.TYPE_INT32, _T.TYPE_SINT32, _T.TYPE_SFIXED32), _SHORT_SIGNED),
    **dict.fromkeys((_T.TYPE_UINT32, _T.TYPE_FIXED32), _SHORT_UNSIGNED),
    _T.TYPE_BOOL: {"type": "boolean"},
    _T.TYPE_STRING: {"type": "string"},
    _T.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
_WELL_KNOWN: Final[Mapping[str, Json]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$"},
    "google.protobuf.FieldMask": {
        "type": "string",
        "description": "Paths in camel case, with commas between them.",
    },
    "google.protobuf.Empty": {"type": "object", "additionalProperties": False},
}
_ERROR: Final[Json] = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "code": {"enum": [code_word(code) for code in HTTP_STATUS]},
        "message": {"type": "string", "description": "One sentence for people."},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "value"],
                "properties": {
                    "type": {
                        "type": "string",
                        "description": "Name of the message, such as google.rpc.BadRequest.",
                    },
                    "value": {"type": "string", "contentEncoding": "base64"},
                    "debug": {"type": "object", "description": "The fields of the message."},
                },
            },
        },
    },
}


def document() -> Json:
    """Return the OpenAPI document."""
    schemas: Json = {"Error": _ERROR, **_TENSOR_SCHEMAS}
    paths: Json = {}
    for method in HTTP_METHODS.values():
        if not method.takes_stream and method.descriptor.containing_service.file.package != "inference":
            paths[method.path] = _operations(method, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Quercus",
            "version": __version__,
            "description": _TITLE,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}, {}],
        "paths": paths | _inference_paths() | _PAGES,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Where the server asks for tokens.",
                }
            },
        },
    }


def _operations(method: HttpMethod, schemas: Json) -> Json:
    request = _reference(method.descriptor.input_type, schemas)
    response = _reference(method.descriptor.output_type, schemas)
    answer: Json = {
        "description": "The response.",
        "content": {JSON_TYPE: {"schema": response}, PROTO_TYPE: {"schema": {}}},
    }
    if method.descriptor.server_streaming:
        answer = {
            "description": 'A message a line. If the call fails after the first, the last line is {"error": ...}.',
            "content": {LINES_TYPE: {"schema": response}},
        }
    comment = protocol_comments().get(method.descriptor.full_name, "")
    roles = ", ".join(sorted(RPCS[method.path].roles))
    shared = {
        "tags": [method.descriptor.containing_service.name],
        "responses": {"200": answer, **_errors(method.path)},
        "description": f"{comment} Roles: {roles}.".strip(),
    }
    name = method.path.rpartition(".")[2].replace("/", "_")
    body = {"required": True, "content": {JSON_TYPE: {"schema": request}}}
    found: Json = {"post": {"operationId": name, "requestBody": body, **shared}}
    if is_reading(method.descriptor):
        message = {"name": "message", "in": "query", "content": {JSON_TYPE: {"schema": request}}}
        found["get"] = {"operationId": f"{name}_GET", "parameters": [message], **shared}
    return found


def _errors(path: str) -> Json:
    by_status: dict[int, list[str]] = {}
    for code, cause in RPCS[path].statuses.items():
        if path.startswith(OPEN_PREFIX) and code is grpc.StatusCode.UNAUTHENTICATED:
            continue
        by_status.setdefault(HTTP_STATUS[code], []).append(f"{code_word(code)}: {cause}")
    found = {str(status): _error(" ".join(texts)) for status, texts in sorted(by_status.items())}
    return found | {"default": _error("Another error.")}


def _error(text: str) -> Json:
    return {"description": text, "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}}


# Messages


def _name(full_name: str) -> str:
    return full_name.removeprefix(_SHORT)


def _reference(descriptor: Descriptor, schemas: Json) -> Json:
    """Return the schema of a message; unless it is one of protobuf's own, it is added to `schemas`."""
    if descriptor.full_name in _WELL_KNOWN:
        return dict(_WELL_KNOWN[descriptor.full_name])
    name = _name(descriptor.full_name)
    if name not in schemas:
        schema: Json = {"type": "object", "additionalProperties": False}
        schemas[name] = schema  # before its fields, one of which may have the same type
        if comment := protocol_comments().get(descriptor.full_name):
            schema["description"] = comment
        schema["properties"] = {field.json_name: _field(field, schemas) for field in descriptor.fields}
    return {"$ref": f"#/components/schemas/{name}"}


def _field(field: FieldDescriptor, schemas: Json) -> Json:
    comment = protocol_comments().get(field.full_name)
    words = {"description": comment} if comment else {}
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        value = _value(message.fields_by_name["value"], schemas)
        return {"type": "object", "additionalProperties": value} | words
    value = _value(field, schemas)
    return ({"type": "array", "items": value} if field.is_repeated else value) | words


def _value(field: FieldDescriptor, schemas: Json) -> Json:
    if field.message_type is not None:
        return _reference(field.message_type, schemas)
    if field.enum_type is not None:
        return _enumeration(field.enum_type, schemas)
    return dict(_SCALARS[field.type])


def _enumeration(descriptor: EnumDescriptor, schemas: Json) -> Json:
    name = _name(descriptor.full_name)
    if name not in schemas:
        comments = {
            value.name: protocol_comments().get(f"{descriptor.full_name}.{value.name}")
            for value in descriptor.values
        }
        schemas[name] = {"type": "string", "enum": list(comments)}
        if any(comments.values()):
            meanings = (f"{value}: {comment}" for value, comment in comments.items() if comment)
            schemas[name]["description"] = "\n".join(meanings)
    return {"$ref": f"#/components/schemas/{name}"}


# Other paths

_DATATYPES: Final = (
    "BOOL",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "FP32",
    "FP64",
    "BYTES",
)
_TENSOR_HEAD: Final[Json] = {
    "name": {"type": "string"},
    "datatype": {"enum": list(_DATATYPES)},
    "shape": {"type": "array", "items": {"type": "integer"}},
}
_TENSOR: Final[Json] = {
    "type": "object",
    "required": ["name", "datatype", "shape"],
    "properties": {
        **_TENSOR_HEAD,
        "parameters": {"type": "object"},
        "data": {"type": "array", "description": "Row by row, flat or nested. null: not known."},
    },
    "additionalProperties": False,
}
_TENSOR_SCHEMAS: Final[Json] = {
    "InferenceTensor": _TENSOR,
    "InferenceRequest": {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "parameters": {"type": "object"},
            "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/InferenceTensor"}},
            "outputs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "parameters": {"type": "object"}},
                    "additionalProperties": False,
                },
            },
        },
        "additionalProperties": False,
    },
    "InferenceResponse": {
        "type": "object",
        "required": ["model_name", "model_version", "outputs"],
        "properties": {
            "model_name": {"type": "string"},
            "model_version": {"type": "string"},
            "id": {"type": "string"},
            "parameters": {"type": "object"},
            "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/InferenceTensor"}},
        },
    },
}


def _inference_paths() -> Json:
    """Return the paths of the Open Inference Protocol."""
    model = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    answers: Mapping[str, tuple[str, str, Json]] = {
        "/v2": ("ServerMetadata", "Name, version and extensions of the server.", {}),
        "/v2/health/live": ("ServerLive", "Whether the server is there.", {}),
        "/v2/health/ready": ("ServerReady", "Whether the store can be read.", {}),
        "/v2/models/{model}": ("ModelMetadata", "Inputs and outputs of a model.", {"parameters": [model]}),
        "/v2/models/{model}/ready": ("ModelReady", "Whether the model has a tree.", {"parameters": [model]}),
    }
    paths: Json = {
        path: {"get": _inference_operation(name, text, {"type": "object"}) | more}
        for path, (name, text, more) in answers.items()
    }
    response = {"$ref": "#/components/schemas/InferenceResponse"}
    request = {"schema": {"$ref": "#/components/schemas/InferenceRequest"}}
    infer = _inference_operation("ModelInfer", "Classify rows.", response)
    body = {"required": True, "content": {JSON_TYPE: request}}
    paths["/v2/models/{model}/infer"] = {"post": infer | {"parameters": [model], "requestBody": body}}
    return paths


def _inference_operation(name: str, text: str, schema: Json) -> Json:
    path = f"/inference.GRPCInferenceService/{name}"
    answer = {"description": text, "content": {JSON_TYPE: {"schema": schema}}}
    unready = {"503": {"description": "It is not."}} if name.endswith(("Live", "Ready")) else {}
    errors = _errors(path)
    return {
        "operationId": name,
        "tags": ["Open Inference Protocol"],
        "responses": {"200": answer} | errors | ({} if "503" in errors else unready),
    }


def _page(name: str, text: str, kind: str, excludes: tuple[str, ...] = ()) -> Json:
    answer = {"description": text, "content": {kind: {"schema": {}}}}
    found: Json = {"operationId": name, "tags": ["Pages"], "security": [{}], "responses": {"200": answer}}
    if excludes:
        schema = {"type": "array", "items": {"enum": list(excludes)}}
        found["parameters"] = [
            {"name": "exclude", "in": "query", "schema": schema, "description": "Parts that do not count."}
        ]
        found["responses"] |= {
            "503": answer | {"description": "A part is not."},
            "default": _error("Another error."),
        }
    return {"get": found}


_PAGES: Final[Json] = {
    "/livez": _page("livez", "Store and grower are well; a line for each.", TEXT, LIVE),
    "/readyz": _page("readyz", "All parts are well; a line for each.", TEXT, READY),
    "/metrics": _page("metrics", "Metrics for Prometheus.", TEXT),
    "/openapi.json": _page("openapi", "This description.", JSON_TYPE),
    "/": _page("index", "What is here, for people.", "text/html"),
}


_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLOCK: Final = re.compile(r"(message|enum|service|oneof|rpc)\s+(\w+)")
_FIELD: Final = re.compile(r"(?:(?:repeated|optional)\s+)?(?:map<[^>]*>|[\w.]+)\s+(\w+)\s*=\s*\d+")
_VALUE: Final = re.compile(r"(\w+)\s*=\s*-?\d+\s*[;\[]")
_PACKAGE: Final = re.compile(r"package\s+([\w.]+)\s*;")


def comments_of(text: str) -> dict[str, str]:
    r"""Return the comments in a ``.proto`` file, by full name of what they precede.

    Examples
    --------
    >>> comments_of("package a;\n// A thing.\nmessage T {\n  // Its\n  // name.\n  string n = 1;\n}\n")
    {'a.T': 'A thing.', 'a.T.n': 'Its name.'}
    """
    found: dict[str, str] = {}
    package, before = "", []
    scopes: list[str | None] = []  # None: braces without a name
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("//"):
            before.append(words.removeprefix("//").strip())
            continue
        code = _STRING.sub('""', words)
        block = _BLOCK.match(code)
        field = _FIELD.match(code) or _VALUE.match(code)
        named = block[2] if block is not None else field[1] if field is not None else None
        if (given := _PACKAGE.match(code)) is not None:
            package = given[1]
        elif named is not None and before and None not in scopes:
            found[".".join([package, *filter(None, scopes), named])] = " ".join(before)
        before = []
        for brace in re.findall(r"[{}]", code):
            if brace == "}":
                scopes.pop()
            elif block is None or block[1] == "rpc":
                scopes.append(None)
            else:
                scopes.append(
                    "" if block[1] == "oneof" else block[2]
                )  # fields of a oneof belong to the message
    return found


@cache
def protocol_comments() -> Mapping[str, str]:
    """Return the comments of all files of the protocol, by full name."""
    found: dict[str, str] = {}
    for package in ("quercus.v1", "quercus.inference"):
        for file in files(package).iterdir():
            if file.name.endswith(".proto"):
                found |= comments_of(file.read_text(encoding="utf-8"))
    return found
