"""Directives of the reference: pages made from the code, so that they cannot differ from it.

``{rpcs} instance`` shows the services of ``proto/quercus/v1/instance.proto``, with the comments of that file and who
may call; ``{commands}`` the command line; ``{exit-codes}``, ``{metrics}``, ``{limits}``, ``{errors}``, ``{any-call}``,
``{by-grpc}``, ``{grpc-limits}`` and ``{callers}`` a table each.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from google.protobuf import descriptor_pb2
from sphinx.util.docutils import SphinxDirective

from quercus.cli.failures import EXIT_CODES
from quercus.cli.main import COMMANDS, load_command
from quercus.client import errors
from quercus.server.gate.grpc_limits import GRPC_LIMITS
from quercus.server.gate.rpcs import ANY_CALL, LIBRARY, ROLES, RPCS, Causes
from quercus.server.telemetry.metric_table import METRICS
from quercus.server.wire import limits

ROOT = Path(__file__).resolve().parents[2]
TYPES = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    TYPES.TYPE_DOUBLE: "double",
    TYPES.TYPE_FLOAT: "float",
    TYPES.TYPE_INT64: "int64",
    TYPES.TYPE_UINT64: "uint64",
    TYPES.TYPE_INT32: "int32",
    TYPES.TYPE_UINT32: "uint32",
    TYPES.TYPE_BOOL: "bool",
    TYPES.TYPE_STRING: "string",
    TYPES.TYPE_BYTES: "bytes",
}


def cell(text: str) -> str:
    """A text for one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    columns = list(head)
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


class Generated(SphinxDirective):
    """A directive whose content is Markdown that a function writes."""

    has_content = False
    optional_arguments = 1

    def text(self) -> str:
        """Return the Markdown."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse the text at the place of the directive."""
        return self.parse_text_to_nodes(self.text(), allow_section_headings=True)


# RPCs


@cache
def described() -> list[descriptor_pb2.FileDescriptorProto]:
    """The files of the protocol, with their comments."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set.binpb"
        build = [
            str(Path(sys.executable).with_name("buf")),
            "build",
            "--as-file-descriptor-set",
            "--exclude-imports",
        ]
        build += ["--path", "proto/quercus", "--output", str(out)]
        subprocess.run(build, cwd=ROOT, check=True)  # noqa: S603
        found = descriptor_pb2.FileDescriptorSet()
        found.ParseFromString(out.read_bytes())
    return list(found.file)


def comments(file: descriptor_pb2.FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """The comment before each part of a file, by its path."""
    return {tuple(each.path): each.leading_comments.strip() for each in file.source_code_info.location}


def type_name(field: descriptor_pb2.FieldDescriptorProto) -> str:
    """The type of a field, as in the file."""
    name = SCALARS.get(field.type) or field.type_name.removeprefix(".quercus.v1.").removeprefix(
        ".google.protobuf."
    )
    if field.label == TYPES.LABEL_REPEATED:
        return f"repeated {name}"
    return f"optional {name}" if field.proto3_optional else name


class Rpcs(Generated):
    """The services and messages of one file of the protocol."""

    required_arguments = 1
    optional_arguments = 0

    def text(self) -> str:
        """Return a section for each service, and one for the messages."""
        (file,) = (each for each in described() if each.name.endswith(f"/{self.arguments[0]}.proto"))
        said = comments(file)
        return "\n".join([*self._services(file, said), *self._messages(file, said)])

    def _services(self, file: Any, said: dict[tuple[int, ...], str]) -> Iterator[str]:
        for i, service in enumerate(file.service):
            yield f"## {service.name}\n"
            for k, method in enumerate(service.method):
                request, answer = method.input_type.rpartition(".")[2], method.output_type.rpartition(".")[2]
                request = f"stream {request}" if method.client_streaming else request
                answer = f"stream {answer}" if method.server_streaming else answer
                rpc = RPCS[f"/{file.package}.{service.name}/{method.name}"]
                roles = ", ".join(sorted(rpc.roles))
                yield f"### {method.name}\n\n`{request}` → `{answer}`. May call: {roles}.\n"
                yield cell(said.get((6, i, 2, k), "")).replace("\\|", "|") + "\n"
                rows = sorted((f"`{code.name}`", text) for code, text in rpc.causes.items())
                yield table(("status", "when"), rows) if rows else ""

    def _messages(self, file: Any, said: dict[tuple[int, ...], str]) -> Iterator[str]:
        yield "## Messages\n" if file.message_type else ""
        for i, message in enumerate(file.message_type):
            yield f"### {message.name}\n"
            yield cell(said.get((4, i), "")).replace("\\|", "|") + "\n"
            rows = [
                (
                    f"`{field.name}`",
                    str(field.number),
                    cell(type_name(field)),
                    cell(said.get((4, i, 2, k), "")),
                )
                for k, field in enumerate(message.field)
            ]
            yield table(("field", "number", "type", "meaning"), rows) if rows else "It has no fields.\n"
            for k, kind in enumerate(message.enum_type):
                yield from self._enum(kind, said, (4, i, 4, k))
        for i, kind in enumerate(file.enum_type):
            yield from self._enum(kind, said, (5, i))

    @staticmethod
    def _enum(kind: Any, said: dict[tuple[int, ...], str], at: tuple[int, ...]) -> Iterator[str]:
        yield f"Enumeration `{kind.name}`:\n"
        rows = [(f"`{v.name}`", cell(said.get((*at, 2, k), ""))) for k, v in enumerate(kind.value)]
        yield table(("value", "meaning"), rows)


# The command line


class Commands(Generated):
    """Every command with its flags."""

    def text(self) -> str:
        """Return a section for each command."""
        parts = []
        for name in COMMANDS:
            found = load_command(name)
            verbs = getattr(found, "commands", None) or {"": found}
            parts.append(f"## quercus {name}\n")
            for verb, each in verbs.items():
                if verb:
                    parts.append(f"### quercus {name} {verb}\n")
                parts.append(_help(each) + "\n")
                parts.append(_flags(each))
        return "\n".join(parts)


def _help(found: Any) -> str:
    """The text of a command's help; its examples as a block of code."""
    paragraphs = []
    for part in str(found.help).split("\n\n"):
        if part.startswith("    "):
            paragraphs.append(f"```text\n{inspect.cleandoc(part)}\n```")
        else:
            paragraphs.append(part.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*"))
    return "\n\n".join(paragraphs)


def _flags(found: Any) -> str:
    rows = []
    for each in found.params:
        if "--help" in each.opts:
            continue
        names = (
            ", ".join(f"`{flag}`" for flag in each.opts if flag.startswith("-")) or f"`{each.name.upper()}`"
        )
        rows.append((names, cell(str(getattr(each, "help", "") or ""))))
    return table(("flag or argument", "meaning"), rows)


class ExitCodes(Generated):
    """The exit codes and their meanings."""

    def text(self) -> str:
        """Return a table."""
        return table(("code", "meaning"), ((str(code), text) for code, text in EXIT_CODES.items()))


# Tables


class Metrics(Generated):
    """Every metric."""

    def text(self) -> str:
        """Return a table."""
        rows = [(f"`{m.sample_name}`", m.kind, ", ".join(m.labels), cell(m.sentence)) for m in METRICS]
        return table(("metric", "kind", "labels", "meaning"), rows)


class Errors(Generated):
    """The errors of the client, each with its status."""

    def text(self) -> str:
        """Return a table."""
        codes: dict[str, list[str]] = {}
        for code, kind in errors._BY_CODE.items():
            codes.setdefault(kind.__name__, []).append(f"`{code.name}`")
        kinds = [
            kind
            for kind in vars(errors).values()
            if isinstance(kind, type)
            and issubclass(kind, errors.QuercusError)
            and kind is not errors.QuercusError
        ]
        rows = [
            (
                f"`{kind.__name__}`",
                ", ".join(codes.get(kind.__name__, ["-"])),
                cell((kind.__doc__ or "").split("\n\n")[0]),
            )
            for kind in kinds
        ]
        return table(("exception", "status", "meaning"), rows)


class AnyCall(Generated):
    """The status codes that any call may end with."""

    told: Causes = ANY_CALL

    def text(self) -> str:
        """Return a table."""
        rows = [(f"`{code.name}`", cell(text)) for code, text in self.told.items()]
        return table(("status", "when"), rows)


class ByGrpc(AnyCall):
    """The status codes that gRPC gives itself."""

    told = LIBRARY


class GrpcLimits(Generated):
    """The limits of gRPC itself."""

    def text(self) -> str:
        """Return a table."""
        rows = [
            (
                f"`{limit.option}`",
                "" if limit.value is None else f"{limit.value:,}",
                cell(limit.reason),
                "" if limit.status is None else f"`{limit.status.name}`",
            )
            for limit in GRPC_LIMITS
        ]
        return table(("option", "value", "reason", "a call beyond it"), rows)


class Callers(Generated):
    """The roles that may make each call, and its special status codes."""

    def text(self) -> str:
        """Return a table."""
        rows = [
            (
                f"`{rpc.name}`",
                *("x" if role in rpc.roles else "" for role in ROLES),
                ", ".join(sorted(f"`{code.name}`" for code in rpc.causes)),
            )
            for rpc in sorted(RPCS.values(), key=lambda rpc: rpc.name)
        ]
        return table(("call", *ROLES, "own status codes"), rows)


class Limits(Generated):
    """The bounds of messages and calls that cannot be set."""

    def text(self) -> str:
        """Return a table of the constants in ``server/wire/limits.py`` that have a sentence."""
        source = inspect.getsource(limits)
        found = re.findall(r'^([A-Z_]+): Final = .*\n"""((?:.|\n)*?)"""', source, re.MULTILINE)
        rows = [(f"`{name}`", f"{getattr(limits, name):,}", cell(text)) for name, text in found]
        return table(("bound", "value", "meaning"), rows)


def leave_out(app: Any, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Omit what reads results from messages, and what scikit-learn adds to estimators with references to its pages."""
    return True if re.fullmatch(r"from_message|set_\w+_request|get_metadata_routing", name) else None


def setup(app: Any) -> dict[str, object]:
    """Make the directives known to Sphinx."""
    for name, directive in (
        ("rpcs", Rpcs),
        ("commands", Commands),
        ("exit-codes", ExitCodes),
        ("metrics", Metrics),
        ("errors", Errors),
        ("any-call", AnyCall),
        ("by-grpc", ByGrpc),
        ("grpc-limits", GrpcLimits),
        ("callers", Callers),
        ("limits", Limits),
    ):
        app.add_directive(name, directive)
    app.connect("autodoc-skip-member", leave_out)
    return {"version": "1", "parallel_read_safe": True}
