"""Sessions end, make room for each other, and show no secret."""

import asyncio
import threading

import pytest
from grpc.aio import UsageError

from quercus.belief.errors import InvalidInput
from quercus.client.aio import Client
from quercus.client.errors import Unavailable
from quercus.client.results import Caller
from quercus.console import sessions as sessions_module
from quercus.console.config import ConsoleConfig
from quercus.console.pages import create
from quercus.console.sessions import IDLE_S, MAX_PER_CALLER, FailureThrottle, Session, Sessions

TOKEN = "quercus_0123456789ab_" + "s" * 43


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def session(name: str, at: float = 0.0) -> Session:
    caller = Caller(name, ("labeller",), None, True, frozenset({"QueryService/LeaseQueries"}))
    return Session(caller, name, Client("127.0.0.1:1", token=TOKEN), at)


def test_a_session_ends_when_nobody_uses_it() -> None:
    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        secret = await sessions.add_session(session("ann"))
        clock.now = IDLE_S - 1
        assert sessions.find_session(secret) is not None
        clock.now += IDLE_S - 1  # it was used
        assert sessions.find_session(secret) is not None
        clock.now += IDLE_S + 1
        assert sessions.find_session(secret) is None
        await sessions.expire_idle()
        assert len(sessions) == 0

    asyncio.run(run())


def test_one_caller_has_a_bounded_number() -> None:
    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        first = await sessions.add_session(session("ann"))
        others = await sessions.add_session(session("bob"))
        for clock.now in range(1, MAX_PER_CALLER + 1):
            await sessions.add_session(session("ann", clock.now))
        assert sessions.find_session(first) is None
        assert sessions.find_session(others) is not None
        assert len(sessions) == MAX_PER_CALLER + 1
        await sessions.close()
        assert len(sessions) == 0

    asyncio.run(run())


def test_all_callers_together_have_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions_module.MAX_SESSIONS == 1000
    monkeypatch.setattr(sessions_module, "MAX_SESSIONS", 5)

    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        secrets = []
        for clock.now in range(7):
            secrets.append(await sessions.add_session(session(f"caller {clock.now}", clock.now)))
        assert [sessions.find_session(each) is not None for each in secrets] == [False] * 2 + [True] * 5
        await sessions.close()

    asyncio.run(run())


def test_all_sessions_end_at_the_same_time() -> None:
    """Each gives back its queries, which takes seconds if the server hangs."""

    async def run() -> None:
        all_closing = asyncio.Barrier(3)

        class Waiting(Session):
            async def close(self) -> None:
                await asyncio.wait_for(all_closing.wait(), 10)
                await super().close()

        sessions = Sessions(Clock())
        for each in map(session, ("ann", "bob", "eve")):
            await sessions.add_session(Waiting(each.caller, each.labeller, each.client, each.used))
        await sessions.close()
        assert len(sessions) == 0

    asyncio.run(run())


def test_signing_out_closes_the_connection() -> None:
    async def run() -> None:
        sessions = Sessions()
        ann = session("ann")
        secret = await sessions.add_session(ann)
        with pytest.raises(Unavailable):  # there is no server, but the connection is open
            await ann.client.get_model("m")
        await sessions.end_session(secret)
        assert sessions.find_session(secret) is None
        with pytest.raises(UsageError, match="closed"):
            await ann.client.get_model("m")

    asyncio.run(run())


def test_a_file_that_takes_long_to_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create, "PARSE_S", 0.05)
    go_on = threading.Event()

    async def run() -> None:
        with pytest.raises(InvalidInput, match=r"took longer than 0\.05 s"):
            await create.in_thread(go_on.wait)
        go_on.set()

    asyncio.run(run())


def test_nothing_shows_the_secrets() -> None:
    async def run() -> None:
        sessions = Sessions()
        ann = session("ann")
        secret = await sessions.add_session(ann)
        assert len(secret) >= 43  # 256 bits
        shown = f"{ann!r} {sessions!r} {vars(sessions)!r}"
        assert TOKEN not in shown
        assert secret not in shown
        assert ann.form_token not in shown
        assert ann.accepts_form(ann.form_token)
        assert not ann.accepts_form("")
        assert not ann.accepts_form("ä")
        await sessions.close()

    asyncio.run(run())


def test_failures_are_throttled_by_address_and_forgotten() -> None:
    clock = Clock()
    throttle = FailureThrottle(clock)
    for clock.now in range(9):
        throttle.count_failure("a")
    assert throttle.wait_s("a") == 0
    throttle.count_failure("a")
    assert throttle.wait_s("a") == 292
    assert throttle.wait_s("b") == 0
    clock.now = 301
    assert throttle.wait_s("a") == 0
    throttle.forget_failures("a")
    throttle.count_failure("a")
    assert throttle.wait_s("a") == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"host": "0.0.0.0"}, "unencrypted"),
        ({"tls_cert": "x.pem"}, "go together"),
        ({"tls_cert": "/none/x.pem", "tls_key": "/none/y.pem"}, "is not a file"),
        ({"names": ("a.example:80",)}, "without port"),
        ({"media": ("http://cam.example",)}, "must be https"),
        ({"media": ("https://cam.example/x; script-src *",)}, "must be an origin"),
        ({"port": 70000}, "must be a whole number in"),
        ({"send_delay_s": 6.0}, "must lie in"),
        ({"access": "all"}, "must be one of auto, open"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        ConsoleConfig(**given)  # type: ignore[arg-type]


def test_media_of_this_machine_may_be_plain() -> None:
    assert (
        ConsoleConfig(media=("http://127.0.0.1:9000", "https://cam.example")).media[0]
        == "http://127.0.0.1:9000"
    )
