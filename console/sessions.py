"""Sessions of signed-in users, kept in the console's memory, each with its own connection."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from quercus.client.aio import Client
from quercus.client.results import Caller, Learner, NewToken, Tree
from quercus.console.bulk import BulkPlan
from quercus.console.half_made import ModelMaking
from quercus.console.labeller_queue import LabellerQueue
from quercus.console.model_plan import FileGuess

IDLE_S = 8 * 3600.0
MAX_SESSIONS = 1000
MAX_PER_CALLER = 20
MAX_FAILURES = 10
FAILURES_S = 300.0
MAX_ADDRESSES = 10_000


@dataclass(frozen=True)
class Upload:
    """An uploaded file; it is deleted when the session ends or another one replaces it.

    It is kept with the learners that the server had then, so that its form can be shown during an outage.
    """

    folder: tempfile.TemporaryDirectory[str]
    path: Path
    name: str
    guess: FileGuess
    learners: tuple[Learner, ...]

    def remove(self) -> None:
        """Delete it."""
        self.folder.cleanup()


@dataclass
class Session:
    """The session of a signed-in person.

    Only the connection has the token; ``repr`` shows neither it nor the secret of the forms. ``user`` is the user named
    by the sign-on proxy; None if the person typed a token or a name.
    """

    caller: Caller
    labeller: str
    client: Client = field(repr=False)
    used: float = field(repr=False)
    user: str | None = None
    form_token: str = field(repr=False, default_factory=lambda: secrets.token_urlsafe(32))
    queues: dict[str, LabellerQueue] = field(repr=False, default_factory=dict)
    streams: int = field(repr=False, default=0)
    flash: str = field(repr=False, default="")
    new_token: NewToken | None = field(repr=False, default=None)
    tree: tuple[tuple[str, int, int], Tree] | None = field(repr=False, default=None)
    upload: Upload | None = field(repr=False, default=None)
    decided: dict[str, list[tuple[str, str]]] = field(repr=False, default_factory=dict)
    bulk: BulkPlan | None = field(repr=False, default=None)
    bulk_done: BulkPlan | None = field(repr=False, default=None)
    progress: str = field(repr=False, default="")
    making: ModelMaking = field(repr=False, default_factory=ModelMaking)
    is_closed: bool = field(repr=False, default=False)

    def may_call(self, method: str) -> bool:
        """Return whether the server permits a call, as in ``TreeService/GetTree``."""
        return self.caller.may_call(method)

    def take_flash(self) -> str:
        """Return and remove the message for the next page."""
        flash, self.flash = self.flash, ""
        return flash

    def note_decision(self, model: str, row: str, words: str, most: int) -> None:
        """Remember a decided row, newest last; at most ``most`` per model."""
        self.forget_decision(model, row)
        self.decided[model] = [*self.decided.get(model, []), (row, words)][-most:]

    def forget_decision(self, model: str, row: str) -> None:
        """Forget a row, whose decision was taken back."""
        self.decided[model] = [each for each in self.decided.get(model, []) if each[0] != row]

    def accepts_form(self, form_token: str) -> bool:
        """Return whether a form token belongs to this session, so that one of its pages sent the request."""
        return hmac.compare_digest(form_token.encode(), self.form_token.encode())

    def drop_upload(self) -> None:
        """Delete the file that was uploaded."""
        if self.upload is not None:
            self.upload.remove()
        self.upload = None

    async def close(self) -> None:
        """Give back held queries, and close the connection."""
        self.is_closed = True
        self.drop_upload()
        queues, self.queues = list(self.queues.values()), {}
        await asyncio.gather(*(queue.close() for queue in queues))
        await self.client.close()


class Sessions:
    """All sessions; at most ``MAX_SESSIONS``, and ``MAX_PER_CALLER`` per caller.

    Parameters
    ----------
    clock
        Monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._open)

    def current_time(self) -> float:
        """Return the current time of the clock."""
        return self._clock()

    async def add_session(self, session: Session) -> str:
        """Add a session, and return its secret for the cookie; the least recently used ones make room."""
        await self.expire_idle()
        mine = [key for key, each in self._open.items() if each.labeller == session.labeller]
        await self._make_room(mine, MAX_PER_CALLER)
        await self._make_room(list(self._open), MAX_SESSIONS)
        secret = secrets.token_urlsafe(32)
        self._open[_secret_key(secret)] = session
        return secret

    async def _make_room(self, keys: list[str], most: int) -> None:
        for key in sorted(keys, key=lambda key: self._open[key].used)[: max(0, len(keys) - most + 1)]:
            await self._close_session(key)

    def find_session(self, secret: str) -> Session | None:
        """Return the open session of a cookie, if any, and record its use."""
        session = self._open.get(_secret_key(secret))
        if session is None or self._clock() - session.used > IDLE_S:
            return None
        session.used = self._clock()
        return session

    async def end_session(self, secret: str) -> None:
        """Sign out."""
        await self._close_session(_secret_key(secret))

    async def expire_idle(self) -> None:
        """End the sessions that were idle for ``IDLE_S``."""
        now = self._clock()
        for key in [key for key, each in self._open.items() if now - each.used > IDLE_S]:
            await self._close_session(key)

    async def close(self) -> None:
        """End all sessions concurrently, so that none delays the others."""
        await asyncio.gather(*map(self._close_session, list(self._open)))

    async def _close_session(self, key: str) -> None:
        session = self._open.pop(key, None)
        if session is not None:
            await session.close()


def _secret_key(secret: str) -> str:
    """Return a key that reveals nothing about the secret, even through the timing of look-ups."""
    return hashlib.sha256(secret.encode()).hexdigest()


class FailureThrottle:
    """Refuses addresses that failed to sign in too often; at most ``MAX_ADDRESSES`` are remembered.

    Examples
    --------
    >>> throttle = FailureThrottle(clock=lambda: 0.0)
    >>> for _ in range(MAX_FAILURES):
    ...     throttle.count_failure("10.0.0.7")
    >>> throttle.wait_s("10.0.0.7"), throttle.wait_s("10.0.0.8")
    (300.0, 0.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[str, list[float]] = {}

    def count_failure(self, address: str) -> None:
        """Count a failure."""
        recent = self._recent_failures(address)
        if address not in self._failed and len(self._failed) >= MAX_ADDRESSES:
            self._failed.pop(next(iter(self._failed)))
        self._failed[address] = [*recent, self._clock()][-MAX_FAILURES:]

    def forget_failures(self, address: str) -> None:
        """Forget the failures."""
        self._failed.pop(address, None)

    def wait_s(self, address: str) -> float:
        """Return the seconds until the address may try again."""
        recent = self._recent_failures(address)
        return 0.0 if len(recent) < MAX_FAILURES else FAILURES_S - (self._clock() - recent[0])

    def _recent_failures(self, address: str) -> list[float]:
        now = self._clock()
        return [at for at in self._failed.get(address, []) if now - at < FAILURES_S]
