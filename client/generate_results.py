"""Derives `quercus.client.results` and `quercus.client.specifications` from the protocol: run ``make proto``.

A message with the option ``result`` becomes a frozen dataclass with the same fields. The type of a field determines its
form in Python, unless the option ``python`` does (``proto/quercus/v1/options.proto``). The comments of the protocol
become the docstrings. Hand-written additions to a result are in a base class in `quercus.client.additions` named after
it: ``StatusAdditions``.

The definition of a model is written as well as read by users, so fields of its class may be ``None`` for the default.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import wrap
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from quercus.client import additions
from quercus.client.generate_sync import tidy_module
from quercus.v1 import options_pb2

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ".quercus.v1."
WIDTH: Final = 116

HEAD: Final = '''# Generated from proto/quercus/v1 by `make proto`; edit the .proto files, and client/additions.py.
"""The results of the client's calls: frozen values of plain Python types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, Self

from quercus.client.additions import {additions}
from quercus.client.plugins import parameter_of
from quercus.client.display_messages import display_of
from quercus.client.reading import (
    Words,
    fact_of,
    label_of,
    row_values,
    seconds_of,
    to_datetime,
)
from quercus.client.resources import id_of, model_of, number_of
from quercus.client.specification_messages import specification_of
from quercus.client.specifications import Specification
from quercus.client.tree_nodes import TreeNode, nodes_of
from quercus.client.values import Value
from quercus.specification.display import Display
from quercus.specification.parameter import Parameter
from quercus.specification.reasons import Fact
from quercus.specification.written_labels import Label

if TYPE_CHECKING:
    from quercus.v1 import {modules}
'''

SPECIFICATION: Final = f"{PACKAGE}Specification"
SPECIFICATION_HEAD: Final = '''# Generated from proto/quercus/v1/model.proto by `make proto`.
"""The definition of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.specification.learners import Pruning
from quercus.specification.attributes import Attribute
from quercus.specification.guidance import Guidance
from quercus.specification.presentation import Presentation
'''
SPECIFICATION_EXAMPLES: Final = """
    Examples
    --------
    >>> from quercus.client import Nominal, Numeric
    >>> Specification([Nominal("X", "abc"), Numeric("age")], ["ill", "well"], budget=5).classes
    ('ill', 'well')"""
F: Final = FieldDescriptorProto
WHOLE: Final = (F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_SINT32, F.TYPE_SINT64)


@dataclass(frozen=True)
class Form:
    """A type in Python: its name, the expression that converts a value of the message, and its empty value.

    In ``read``, ``{}`` stands for the value, and ``{message}`` for its message. ``empty`` is None for a type without an
    empty value.
    """

    type: str
    read: str = "{}"
    empty: str | None = None


SCALARS: Final[Mapping[int, Form]] = {
    F.TYPE_BOOL: Form("bool", empty="False"),
    F.TYPE_STRING: Form("str", empty='""'),
    F.TYPE_BYTES: Form("bytes", empty='b""'),
    **dict.fromkeys((F.TYPE_DOUBLE, F.TYPE_FLOAT), Form("float", empty="0.0")),
    **dict.fromkeys(WHOLE, Form("int", empty="0")),
}
FORMS: Final[Mapping[str, Form]] = {
    ".google.protobuf.Duration": Form("float", "seconds_of({})", "0.0"),
    ".google.protobuf.Timestamp": Form("datetime", "to_datetime({})"),
    f"{PACKAGE}Branch": Form("tuple[str, str]", "({0}.attribute, {0}.value)"),
    f"{PACKAGE}Contour": Form("tuple[float, ...]", "tuple({}.plausibilities)", "()"),
    f"{PACKAGE}Display": Form("Display", "display_of({})", "()"),
    f"{PACKAGE}Fact": Form("Fact", "fact_of({})"),
    f"{PACKAGE}Label": Form("Label", "label_of({}, classes)", "None"),
    f"{PACKAGE}ParameterDeclaration": Form("Parameter", "parameter_of({})"),
    f"{PACKAGE}Nodes": Form("tuple[TreeNode, ...]", "nodes_of({message})"),
    f"{PACKAGE}NamedRow": Form("Mapping[str, Value]", "row_values({})", "field(default_factory=dict)"),
    f"{PACKAGE}Specification": Form("Specification", "specification_of({})"),
    f"{PACKAGE}Attribute": Form("Attribute"),
    f"{PACKAGE}Pruning": Form("Pruning"),
    f"{PACKAGE}Plugin": Form("str | Mapping[str, Any]"),
    f"{PACKAGE}Presentation": Form("Presentation"),
    f"{PACKAGE}Guidance": Form("Guidance"),
}
"""Messages that have a type of their own in Python."""
BY_CLASS: Final = Form(
    "Mapping[str, float]",
    "dict(zip(classes, {}.plausibilities, strict=False))",
    "field(default_factory=dict)",
)
PARTS: Final = {
    options_pb2.RESOURCE_PART_MODEL: Form("str", "model_of({})", '""'),
    options_pb2.RESOURCE_PART_ID: Form("str", "id_of({})", '""'),
    options_pb2.RESOURCE_PART_NUMBER: Form("int", "number_of({})", "0"),
}


@dataclass(frozen=True)
class Message:
    """A message, with its place in its file, and the file's comments by the path of the element that they precede."""

    proto: DescriptorProto
    module: str
    path: tuple[int, ...]
    comments: Mapping[tuple[int, ...], str]

    @property
    def meaning(self) -> str:
        """The comment before it."""
        return self.comments.get(self.path, "")

    def fields(self) -> Iterator[tuple[FieldDescriptorProto, str]]:
        """Yield its fields with the comments before them, in order of declaration."""
        for k, each in enumerate(self.proto.field):
            yield each, self.comments.get((*self.path, 2, k), "")

    @property
    def result(self) -> options_pb2.Result | None:
        """The option ``result``; None if the Python client has no result for it."""
        options = self.proto.options
        return options.Extensions[options_pb2.result] if options.HasExtension(options_pb2.result) else None

    @property
    def name(self) -> str:
        """The name of its result."""
        return (self.result.name if self.result else "") or self.proto.name


@dataclass(frozen=True)
class ResultField:
    """A field of a result."""

    name: str
    type: str
    read: str
    """The value in the message, in Python."""
    empty: str | None
    """The default value, as a Python expression; None: it must be given."""
    meaning: str
    is_secret: bool = False
    has_default: bool = False
    """True if the protocol defines the default."""

    def declaration(self, must_be_given: bool) -> str:
        """Return its line in the class."""
        empty = None if must_be_given else self.empty
        if self.is_secret:
            factory = re.fullmatch(r"field\((.*)\)", empty or "")
            default = [] if empty is None else [factory[1] if factory else f"default={empty}"]
            empty = f"field({', '.join([*default, 'repr=False'])})"
        return f"{self.name}: {self.type}" + ("" if empty is None else f" = {empty}")


class Protocol:
    """The messages and enums of the protocol.

    Parameters
    ----------
    files
        Descriptors with comments.
    """

    def __init__(self, files: Sequence[FileDescriptorProto]) -> None:
        self.messages: dict[str, Message] = {}
        self.enums: dict[str, EnumDescriptorProto] = {}
        for file in files:
            package = f".{file.package}."
            comments = {
                tuple(each.path): " ".join(each.leading_comments.split())
                for each in file.source_code_info.location
                if each.leading_comments
            }
            module = Path(file.name).stem + "_pb2"
            for k, proto in enumerate(file.message_type):
                self.messages[package + proto.name] = Message(proto, module, (4, k), comments)
                self.enums |= {f"{package}{proto.name}.{enum.name}": enum for enum in proto.enum_type}
            self.enums |= {package + enum.name: enum for enum in file.enum_type}

    @cached_property
    def results(self) -> dict[str, Message]:
        """The messages that have results, by name, each after those that it needs."""
        found: dict[str, Message] = {}
        seen: set[str] = set()

        def visit(name: str) -> None:
            message = self.messages.get(name)
            if message is None or name in seen:
                return
            seen.add(name)
            for each in message.proto.field:
                visit(each.type_name)
            if message.result is not None:
                found[name] = message

        for name in self.messages:
            visit(name)
        return found

    def needs_classes(self, message: Message) -> bool:
        """Return whether reading a message needs the frame, since it or its parts do not name the classes."""
        return any(re.search(r"(?<!\.)\bclasses\b", each.read) for each in self.fields_of(message))

    def fields_of(self, message: Message, before: str = "message") -> Iterator[ResultField]:
        """Yield the fields of the result of a message, given the expression `before` for the message."""
        if message.result is not None:
            for given in message.result.given:
                yield ResultField(given.name, given.type, given.name, None, given.meaning)
        for proto, meaning in message.fields():
            for shown in proto.options.Extensions[options_pb2.python] or [options_pb2.Shown()]:
                if shown.inline:
                    yield from self.fields_of(self.messages[proto.type_name], f"{before}.{proto.name}")
                elif not shown.hidden:
                    yield self._field(proto, shown, before, meaning)

    def _field(
        self, proto: FieldDescriptorProto, shown: options_pb2.Shown, before: str, meaning: str
    ) -> ResultField:
        at = f"{before}.{proto.name}"
        form = self._form(proto, shown)
        value, kind, empty = form.read.format(at, message=before), form.type, form.empty
        if proto.proto3_optional or shown.none_if:
            test = f"not {before}.{shown.none_if}" if shown.none_if else f'{before}.HasField("{proto.name}")'
            unset = shown.default or "None"
            value, empty = f"{value} if {test} else {unset}", unset
            if not shown.default:
                kind = "Label" if kind == "Label" else f"{kind} | None"  # a label may be None anyway
                meaning = re.sub(r"\b[Aa]bsent\b", "``None``", meaning)
        name = proto.name + ("_s" if proto.type_name == ".google.protobuf.Duration" else "")
        is_secret, has_default = proto.options.debug_redact, bool(shown.default)
        default, meaning = shown.default or empty, shown.meaning or meaning
        return ResultField(shown.name or name, kind, value, default, meaning, is_secret, has_default)

    def _form(self, proto: FieldDescriptorProto, shown: options_pb2.Shown) -> Form:
        if shown.part:
            return PARTS[shown.part]
        if shown.by_class:
            return BY_CLASS
        owner, _, name = proto.type_name.rpartition(".")
        nested = self.messages[owner].proto.nested_type if owner in self.messages else ()
        entry = next((each for each in nested if each.name == name and each.options.map_entry), None)
        if entry is not None:
            key, value = (self.single_form(each) for each in entry.field)
            if value.read != "{}":
                raise ValueError(f"values of {proto.name} cannot be read all at once")
            return Form(
                f"Mapping[{key.type}, {value.type}]",
                "dict(sorted({}.items()))",
                "field(default_factory=dict)",
            )
        single = self.single_form(proto)
        if proto.label != F.LABEL_REPEATED:
            return single
        make = "frozenset" if shown.set else "tuple"
        every = f"{make}[{single.type}]" if shown.set else f"{make}[{single.type}, ...]"
        one = single.read.format("each")
        return Form(
            every,
            make + ("({})" if one == "each" else f"({one} for each in {{}})"),
            "frozenset()" if shown.set else "()",
        )

    def single_form(self, proto: FieldDescriptorProto) -> Form:
        """Return the type of one value of a field."""
        if proto.type in SCALARS:
            return SCALARS[proto.type]
        if proto.type == F.TYPE_ENUM:
            enum = self.enums[proto.type_name]
            read = f"{constant_name(enum)}[{{}}]"
            literal = enum.options.Extensions[options_pb2.words].literal
            return Form(enum.name, read) if literal else Form("str", read, '"unspecified"')
        if proto.type_name in FORMS:
            return FORMS[proto.type_name]
        message = self.results.get(proto.type_name)
        if message is None:
            raise ValueError(f"{proto.type_name} of {proto.name} has neither a result nor a form")
        more = ", classes" if self.needs_classes(message) else ""
        return Form(message.name, f"{message.name}.from_message({{}}{more})")

    def used_enums(self) -> dict[str, EnumDescriptorProto]:
        """Return the enums of fields of results, by name."""
        used: dict[str, EnumDescriptorProto] = {}

        def add_enums(message: Message) -> None:
            for proto, _ in message.fields():
                if proto.type == F.TYPE_ENUM:
                    enum = self.enums[proto.type_name]
                    if used.setdefault(enum.name, enum) is not enum:
                        raise ValueError(f"two enums of results are named {enum.name}")
                elif any(each.inline for each in proto.options.Extensions[options_pb2.python]):
                    add_enums(self.messages[proto.type_name])

        for message in self.results.values():
            add_enums(message)
        return used


def constant_name(enum: EnumDescriptorProto) -> str:
    """Return the name of the constant for an enum, which is also the prefix of its values."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper()


def enum_source(enum: EnumDescriptorProto) -> str:
    """Return the source of an enum's words."""
    name = constant_name(enum)
    words = {each.number: each.name.removeprefix(f"{name}_").lower() for each in enum.value if each.number}
    options = enum.options.Extensions[options_pb2.words]
    text = f"{enum.name} = Literal[{', '.join(map(repr, words.values()))}]\n" if options.literal else ""
    unknown = f", unknown={options.unknown!r}" if options.unknown else ""
    return f"{text}{name}: Final = Words({words!r}{unknown})\n"


def docstring(message: Message, meanings: Mapping[str, str], section: str, *examples: str) -> str:
    """Return the docstring of a class for a message, whose fields have these meanings."""
    summary, _, rest = quoted(message.meaning).partition(". ")
    lines = [f'    """{summary.rstrip(".")}.', ""]
    if rest:
        lines += [*wrap(rest, WIDTH, initial_indent="    ", subsequent_indent="    "), ""]
    lines += [f"    {section}", "    " + "-" * len(section)]
    for name, meaning in meanings.items():
        lines.append(f"    {name}")
        lines += wrap(quoted(meaning), WIDTH, initial_indent="        ", subsequent_indent="        ")
    return "\n".join([*lines, *examples, '    """'])


def quoted(comment: str) -> str:
    """Return a comment with code quoted as in docstrings.

    Examples
    --------
    >>> quoted("Empty for `off`.")
    'Empty for ``off``.'
    """
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", comment)


def result_source(protocol: Protocol, message: Message) -> str:
    """Return the source of a result's class."""
    fields = list(protocol.fields_of(message))
    given = [] if message.result is None else [each.name for each in message.result.given]
    # Fields without an empty value are required, as are all before them; and the first, unless it has a default.
    forced = max(
        (k for k, each in enumerate(fields) if each.empty is None), default=-1 if fields[0].has_default else 0
    )
    base = f"{message.name}Additions"
    parameters = f"message: {message.module}.{message.proto.name}"
    if protocol.needs_classes(message):
        parameters += ", classes: Sequence[str]"
    if given:
        parameters += ", *, " + ", ".join(f"{each.name}: {each.type}" for each in fields[: len(given)])
    lines = [
        "@dataclass(frozen=True)",
        f"class {message.name}{f'({base})' if hasattr(additions, base) else ''}:",
        docstring(message, {each.name: each.meaning for each in fields}, "Attributes"),
        "",
        *(f"    {each.declaration(k <= forced)}" for k, each in enumerate(fields)),
        "",
        "    @classmethod",
        f"    def from_message(cls, {parameters}) -> Self:",
        '        """Return the result of a message."""',
        f"        return cls({', '.join(each.read for each in fields)})",  # keywords would take 10 % longer
    ]
    return "\n".join(lines) + "\n"


def specification_source(protocol: Protocol) -> str:
    """Return the source of the class of a model's definition."""
    message = protocol.messages[SPECIFICATION]
    declarations, several, meanings = [], [], {}
    for proto, meaning in message.fields():
        shown = next(iter(proto.options.Extensions[options_pb2.python]), options_pb2.Shown())
        if shown.hidden:
            continue
        meanings[proto.name] = shown.meaning or re.sub(r"\b[Aa]bsent\b", "``None``", meaning)
        kind = protocol.single_form(proto).type
        if proto.label == F.LABEL_REPEATED:
            several.append(proto.name)
            declarations.append(f"    {proto.name}: Sequence[{kind}]")
        else:
            declarations.append(f"    {proto.name}: {kind} | None = None")
    return "\n".join(
        [
            "@dataclass(frozen=True)",
            "class Specification:",
            docstring(message, meanings, "Parameters", SPECIFICATION_EXAMPLES),
            "",
            *declarations,
            "",
            "    def __post_init__(self) -> None:",
            *(f'        object.__setattr__(self, "{name}", tuple(self.{name}))' for name in several),
            "",
        ]
    )


def described_files() -> Sequence[FileDescriptorProto]:
    """Return the descriptors of the protocol, with comments."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "described.binpb"
        build = [
            str(Path(sys.executable).with_name("buf")),
            "build",
            "--as-file-descriptor-set",
            "--exclude-imports",
        ]
        build += ["--path", "proto/quercus", "--output", str(target)]
        subprocess.run(build, cwd=ROOT, check=True)  # noqa: S603
        return FileDescriptorSet.FromString(target.read_bytes()).file


def generated_modules() -> dict[str, str]:
    """Return the content of each generated module of `quercus.client`, by the name of its file."""
    protocol = Protocol(described_files())
    bases = [f"{each.name}Additions" for each in protocol.results.values()]
    head = HEAD.format(
        additions=", ".join(base for base in bases if hasattr(additions, base)),
        modules=", ".join(sorted({each.module for each in protocol.results.values()})),
    )
    parts = [enum_source(each) for each in protocol.used_enums().values()]
    parts += [result_source(protocol, each) for each in protocol.results.values()]
    return {
        "results.py": tidy_module("\n\n".join([head, *parts])),
        "specifications.py": tidy_module(SPECIFICATION_HEAD + "\n\n" + specification_source(protocol)),
    }


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "client"
    target.mkdir(parents=True, exist_ok=True)
    for name, content in generated_modules().items():
        (target / name).write_text(content)
