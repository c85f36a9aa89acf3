"""Shared parts of the pages: the console and session of a request, templates, and request fields."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.client import errors
from quercus.client.aio import Client
from quercus.client.keys import aria_shortcut
from quercus.console.config import ConsoleConfig
from quercus.console.sessions import FailureThrottle, Session, Sessions
from quercus.console.sign_on import USER, SignOn
from quercus.specification.attributes import plain_number
from quercus.specification.shares import decimal_text, percent_text
from quercus.view.models import deviation_text, gold_text
from quercus.view.queries import gain_text
from quercus.view.svg.classes import mark_name
from quercus.view.svg.curve import draw_curves
from quercus.view.svg.intervals import fold_bars
from quercus.view.words import counted

FOLDER = Path(__file__).parent
TIMEOUT_S = 15.0
MAX_DIGITS = 12
MAX_FIELDS = 2_000
_OWN_PATH = re.compile(r"/(?!/)[A-Za-z0-9/_?=&.%+~:@,-]*")


_STATUS: dict[type[Exception], int] = {
    errors.InvalidArgument: 400,
    InvalidInput: 400,
    errors.NotFound: 404,
    errors.AlreadyExists: 409,
    errors.FailedPrecondition: 409,
    errors.PermissionDenied: 403,
    errors.ResourceExhausted: 429,
    errors.Unavailable: 503,
    errors.DeadlineExceeded: 503,
    errors.Cancelled: 503,
}


class SignInNeeded(Exception):  # noqa: N818  (the action needed)
    """Nobody is signed in, or the token is no longer valid."""


@dataclass(frozen=True)
class Console:
    """The objects with the lifetime of the console."""

    config: ConsoleConfig
    sessions: Sessions = field(default_factory=Sessions)
    throttle: FailureThrottle = field(default_factory=FailureThrottle)
    sign_on: SignOn | None = None

    @property
    def cookie_name(self) -> str:
        """Name of the session cookie; its prefix makes browsers insist on TLS."""
        return "__Host-quercus-console" if self.config.is_encrypted else "quercus-console"

    def connect(self, token: str | None = None) -> Client:
        """Return a new connection to the server. It does not wait for an unreachable server: pages report it."""
        return Client(self.config.server, token=token, timeout_s=TIMEOUT_S, outage_s=0.0)


_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def number_text(value: float) -> str:
    """Return a number in the usual notation.

    Examples
    --------
    >>> number_text(13.0), number_text(0.1234567), number_text(12345), number_text(float("inf"))
    ('13', '0.123457', '12,345', 'inf')
    """
    if abs(value) < 1e15 and value == int(value):
        return f"{int(value):,}"
    return plain_number(value)


def places_text(value: float) -> str:
    """Return a number with two decimals and a typographic minus sign.

    Examples
    --------
    >>> places_text(-0.214)
    '−0.21'
    """
    return f"{value:.2f}".replace("-", "−")


def breakable(name: str) -> Markup:
    """Return a name with possible line breaks after underscores and slashes.

    Examples
    --------
    >>> breakable("petal_length/<mm>")
    Markup('petal_<wbr>length/<wbr>&lt;mm&gt;')
    """
    return Markup(re.sub("([_/])(?=.)", r"\1<wbr>", str(escape(name))))  # noqa: S704 - escaped


def unbroken(text: str) -> str:
    r"""Return a text with no-break spaces before percent signs.

    Examples
    --------
    >>> unbroken("edible (86 %)")
    'edible (86\xa0%)'
    """
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


_templates.filters["breakable"] = breakable
_templates.filters["unbroken"] = unbroken
_templates.filters["number"] = number_text
_templates.filters["places"] = places_text
_templates.filters["share"] = decimal_text
_templates.filters["fold_bars"] = fold_bars
_templates.filters["percent"] = percent_text
_templates.filters["mark"] = mark_name
_templates.filters["counted"] = counted
_templates.filters["curves"] = draw_curves
_templates.filters["deviation"] = deviation_text
_templates.filters["gold"] = gold_text
_templates.filters["gain"] = gain_text
_templates.filters["shortcut"] = aria_shortcut


def console_of(request: Request) -> Console:
    """Return the console that serves a request."""
    return cast("Console", request.app.state.console)


def session_or_none(request: Request) -> Session | None:
    """Return the session of a request's cookie; with sign-on, only if it belongs to the user named by the proxy."""
    console = console_of(request)
    secret = request.cookies.get(console.cookie_name)
    session = console.sessions.find_session(secret) if secret else None
    return session if session is None or session.user == signed_on_user(request) else None


def signed_on_user(request: Request) -> str | None:
    """Return the user that the sign-on proxy names; None if there is none."""
    user: str | None = request.scope.get(USER)
    return user


def session_of(request: Request) -> Session:
    """Return the session of a request.

    Raises
    ------
    SignInNeeded
        When there is none.
    """
    session = session_or_none(request)
    if session is None:
        raise SignInNeeded
    return session


@contextmanager
def waiting(session: Session) -> Iterator[None]:
    """Wait for the server; if the user signs out meanwhile, which closes the connection, require a new sign-in.

    Raises
    ------
    SignInNeeded
        When the session was closed meanwhile.
    """
    try:
        yield
    except (Exception, asyncio.CancelledError):
        if session.is_closed:
            raise SignInNeeded from None
        raise


def check_may(session: Session, method: str) -> None:
    """Refuse a page if the server would refuse the call of its form.

    Raises
    ------
    PermissionDenied
        When the caller may not make the call.
    """
    if not session.may_call(method):
        raise errors.PermissionDenied(
            f"the token of {session.labeller} does not allow that; whoever gave it to you can give you another"
        )


def render_fragment(name: str, **context: Any) -> str:
    """Render a part of a page."""
    return _templates.get_template(name).render(**context)


def render_page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Render a page."""
    shared = {"session": session_or_none(request), "path": request.url.path, "model": None, "tab": ""}
    return HTMLResponse(render_fragment(template, **(shared | context)), status)


def status_of(error: Exception) -> int:
    """Return the status of a page that reports an error of the input or of the server."""
    return next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 502)


def wants_json(request: Request) -> bool:
    """Return whether a script made the request: it accepts JSON."""
    return "application/json" in request.headers.get("accept", "")


def own_path(given: str | None) -> str:
    """Return a path of the console to continue with, never another site.

    Examples
    --------
    >>> own_path("/m/wine/items?text=a+b"), own_path("//evil.example"), own_path("https://evil.example")
    ('/m/wine/items?text=a+b', '/', '/')
    """
    return given if given and _OWN_PATH.fullmatch(given) else "/"


async def read_posted(request: Request, session: Session, *, scripted: bool = False) -> dict[str, Any]:
    """Check the secret, and return the content of a form: lists of texts and files by name.

    If ``scripted``, a script may send a JSON object instead, with values of any kind.

    Raises
    ------
    HTTPException
        If it is neither, or lacks the session's secret.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content: dict[str, Any]
    if scripted and kind == "application/json":
        content = await _read_json(request)
        secret = request.headers.get("x-form-token", "")
    elif kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form = await request.form(max_files=1, max_fields=MAX_FIELDS)
        content = {name: form.getlist(name) for name in form}
        secret = str(form.get("form_token", ""))
    else:
        raise HTTPException(415, "a request must be a form" + " or application/json" * scripted)
    if not session.accepts_form(secret):
        raise HTTPException(403, "the page is of an earlier session: load it again")
    return content


def whole_number_field(given: Mapping[str, Any], name: str, lowest: float, highest: float) -> int:
    """Return a whole number in a field, with or without commas between its thousands.

    Raises
    ------
    InvalidInput
        If the field has something else, or the number is out of bounds.
    """
    text = text_field(given, name, "").strip()
    digits = text.replace(",", "")
    is_whole = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    if not (is_whole and lowest <= int(digits) <= highest):
        raise InvalidInput(
            name, f"is {text[:40]!r}, must be a whole number in [{int(lowest):,}, {int(highest):,}]"
        )
    return int(digits)


def text_field(given: Mapping[str, Any], name: str, otherwise: str | None = None) -> str:
    """Return a field sent by a script, or the single value of a form's field; ``otherwise`` if there is none.

    Raises
    ------
    InvalidInput
        If it is not a single text, or is missing and there is no ``otherwise``.
    """
    value = given.get(name, otherwise)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise InvalidInput(name, "is missing, must be a single text")
    return value


def address_of(path: str, fields: Mapping[str, str]) -> str:
    """Return the address of a page with the non-empty fields.

    Examples
    --------
    >>> address_of("/m/wine/items", {"class": "a b", "text": ""}), address_of("/m/wine/items", {})
    ('/m/wine/items?class=a+b', '/m/wine/items')
    """
    asked = urlencode({name: text for name, text in fields.items() if text})
    return f"{path}?{asked}" if asked else path


async def _read_json(request: Request) -> dict[str, Any]:
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request is not JSON") from None
    if not isinstance(content, dict):
        raise HTTPException(400, "the request is not a JSON object")
    if not _is_unicode(content):
        raise HTTPException(400, "the request contains half a character (a lone surrogate)")
    return content


def _is_unicode(value: Any) -> bool:
    """Return whether every text in a JSON value is valid Unicode; JavaScript may cut a character in two."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
