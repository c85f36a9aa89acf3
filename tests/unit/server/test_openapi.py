"""The description of the HTTP port: valid, complete, and with the comments that buf finds."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.message_factory import GetMessageClass
from openapi_spec_validator import validate
from support.checkout import ROOT

from quercus.server.http.connect import HTTP_METHODS
from quercus.server.http.openapi import document, protocol_comments

DESCRIBED = document()


def said_by_buf(folder: Path) -> dict[str, str]:
    out = folder / "set.binpb"
    build = [
        str(Path(sys.executable).with_name("buf")),
        "build",
        "--as-file-descriptor-set",
        "--exclude-imports",
    ]
    build += ["--path", "proto/quercus", "--path", "proto/inference", "--output", str(out)]
    subprocess.run(build, cwd=ROOT, check=True)
    found: dict[str, str] = {}
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        for each in file.source_code_info.location:
            if not each.leading_comments or each.path[0] not in {4, 5, 6}:
                continue
            part, names = file, [file.package]
            for at in range(0, len(each.path), 2):
                field = part.DESCRIPTOR.fields_by_number[each.path[at]]
                if at + 1 == len(each.path) or not field.is_repeated:
                    break
                part = getattr(part, field.name)[each.path[at + 1]]
                names.append(part.name)
            else:
                found[".".join(names)] = " ".join(each.leading_comments.split())
    return found


def test_comments_are_those_that_buf_finds(tmp_path: Path) -> None:
    wanted = said_by_buf(tmp_path)
    assert len(wanted) > 300
    assert {name: " ".join(text.split()) for name, text in protocol_comments().items()} == wanted


def test_the_description_is_valid_and_has_every_call() -> None:
    validate(DESCRIBED)
    calls = {
        path
        for path, method in HTTP_METHODS.items()
        if path.startswith("/quercus.v1.") and not method.takes_stream
    }
    assert calls == {path for path in DESCRIBED["paths"] if path.startswith("/quercus.v1.")}
    assert "get" not in DESCRIBED["paths"]["/quercus.v1.ModelService/CreateModel"]
    get = DESCRIBED["paths"]["/quercus.v1.ModelService/GetModel"]["get"]
    assert set(get["responses"]) >= {"200", "400", "401", "403", "404", "429", "503", "default"}
    assert get["responses"]["404"]["description"] == "not_found: No such model."
    model = DESCRIBED["components"]["schemas"]["CreateModelRequest"]["properties"]["modelId"]
    assert model["type"] == "string"


@pytest.mark.parametrize(
    "method",
    [m for m in HTTP_METHODS.values() if m.path.startswith("/quercus")],
    ids=lambda method: method.path,
)
def test_a_message_as_json_fits_its_schema(method: object) -> None:
    """An independent look: the JSON of a message with every field set once."""
    from jsonschema import Draft202012Validator

    for descriptor in (method.descriptor.input_type, method.descriptor.output_type):  # type: ignore[attr-defined]
        if descriptor.full_name.startswith("google."):
            continue
        message = GetMessageClass(descriptor)()
        fill(message, 0)
        schema = {"$ref": f"#/components/schemas/{descriptor.full_name.removeprefix('quercus.v1.')}"}
        if schema["$ref"].rpartition("/")[2] in DESCRIBED["components"]["schemas"]:
            given = json_format.MessageToDict(message)
            Draft202012Validator(schema | {"components": DESCRIBED["components"]}).validate(given)


def fill(message: object, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:  # type: ignore[attr-defined]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.message_type is not None and depth < 4:
            part = getattr(message, field.name)
            child = part.add() if field.is_repeated else part
            if not field.is_repeated:
                child.SetInParent()
            if not field.message_type.full_name.startswith("google."):
                fill(child, depth + 1)
        elif field.message_type is None:
            value: object = b"b" if field.type == field.TYPE_BYTES else "t" if field.cpp_type == 9 else 1
            if field.enum_type is not None:
                value = field.enum_type.values[-1].number
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
