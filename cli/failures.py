"""Exit codes of commands, and their errors in words or, with ``--json``, as one line of JSON.

The line goes to standard error, so that standard output contains only results. The meaning of its keys never changes;
`error_json` lists them.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any, Final, NoReturn

EXIT_CODES: Final = {
    0: "The command succeeded.",
    1: "The command failed; standard error has the reason. Also: `status`, `check`, `doctor`, `inspect` found a fault.",
    2: "The command line is wrong: an unknown flag, a missing argument, a value out of bounds.",
    130: "Ctrl-C ended the command.",
}
"""Each exit code and its meaning."""


def wants_json(arguments: list[str]) -> bool:
    """Return whether a command line asks for JSON.

    Examples
    --------
    >>> wants_json(["models", "list", "--json"]), wants_json(["push", "--", "--json"])
    (True, False)
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    pairs = itertools.pairwise(options)
    return "--json" in options or "--format=jsonl" in options or ("--format", "jsonl") in pairs


def end_interrupted() -> NoReturn:
    """End the program because of Ctrl-C."""
    if wants_json(sys.argv[1:]):
        print(error_json("Interrupted", "Ctrl-C ended the command", 130), file=sys.stderr)
    sys.exit(130)


def option_fault(error: Any) -> str:
    """Return what is wrong with the value of an option, with the value and its bounds.

    Parameters
    ----------
    error : Typer's ``BadParameter``. Later releases of Typer name neither the value of a number nor both bounds.
    """
    found = getattr(error.__cause__, "errors", None)  # of pydantic, which these releases check values with
    if found is None:
        return str(error.message)
    fault = found()[0]
    if fault["type"] == "value_error":
        return str(fault["msg"]).removeprefix("Value error, ")
    if not fault["type"].startswith(("int", "float", "less", "greater", "finite")):
        return f"is {fault['input']!r}: {fault['msg']}"
    low, high = (getattr(error.param, name, None) for name in ("min", "max"))
    bounds = {
        (False, False): "",
        (True, False): f" of at least {low}",
        (False, True): f" of at most {high}",
        (True, True): f" in [{low}, {high}]",
    }[low is not None, high is not None]
    bound = next(iter(fault.get("ctx", {}).values()), None)
    number = "a whole number" if fault["type"].startswith("int") or isinstance(bound, int) else "a number"
    return f"is {fault['input']!r}, must be {number}{bounds}"


def message_of(error: Exception) -> str:
    """Return the message of an error, without the protocol's field paths.

    Examples
    --------
    >>> message_of(OSError(28, "No space left on device")), message_of(OSError(13, "Permission denied", "a.csv"))
    ('No space left on device', 'a.csv: Permission denied')
    """
    from quercus.client.places import plain_text  # noqa: PLC0415  (gRPC comes with it)

    if isinstance(error, OSError) and error.strerror:  # its own text begins with a number
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return plain_text(error)


def hints_of(error: Exception) -> list[str]:
    """Sentences that say what to do next."""
    from quercus.client.errors import NotFound, Unavailable  # noqa: PLC0415  (gRPC comes with it)

    hints = list(getattr(error, "__notes__", ()))
    if isinstance(error, Unavailable) and "no server answers" in str(error):
        hints.append(
            "start one with: quercus serve; or name another with --server HOST:PORT or QUERCUS_SERVER"
        )
    if isinstance(error, NotFound) and error.message.startswith("model "):
        hints.append("list them with: quercus models list")
    return hints


def error_json(
    kind: str,
    message: str,
    exit_code: int,
    *,
    hints: list[str] | None = None,
    fields: list[dict[str, str]] | None = None,
    retry_s: float | None = None,
) -> str:
    """Return an error as a line of JSON.

    Parameters
    ----------
    kind : class of the error, such as ``NotFound``; ``Usage`` for a wrong command line, ``Interrupted`` for Ctrl-C.
    message : description of the failure, for people.
    exit_code : exit code of the command.
    hints : instructions for the user.
    fields : invalid fields of a request (``field``), each with the reason (``reason``).
    retry_s : seconds after which another attempt may succeed; None: the server does not say so.

    Examples
    --------
    >>> print(error_json("NotFound", "model tea does not exist", 1))
    {"error": {"kind": "NotFound", "message": "model tea does not exist", "exit_code": 1, "hints": [], "fields": [], \
"retry_s": null}}
    """
    content: dict[str, Any] = {"kind": kind, "message": message, "exit_code": exit_code}
    content |= {"hints": hints or [], "fields": fields or [], "retry_s": retry_s}
    return json.dumps({"error": content}, ensure_ascii=False)


def print_error_json(error: Exception) -> None:
    """Write an error to standard error, as a line of JSON."""
    fields = [{"field": v.field, "reason": v.reason} for v in getattr(error, "violations", ())]
    line = error_json(
        type(error).__name__,
        message_of(error),
        1,
        hints=hints_of(error),
        fields=fields,
        retry_s=getattr(error, "retry_s", None),
    )
    print(line, file=sys.stderr)
