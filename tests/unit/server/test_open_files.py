"""Connections leave open files to the store, however few the system allows."""

import resource

import pytest

from quercus.server.machine import OWN_FILES, room_for_connections

UNBOUNDED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "room", "soft"),
    [
        ((1024, 1_048_576), 10_000, 10_000 + OWN_FILES),
        ((1024, UNBOUNDED), 10_000, 10_000 + OWN_FILES),
        ((1024, 4096), 4096 - OWN_FILES, 4096),
        ((256, 256), 128, 256),
        ((50_000, 50_000), 10_000, 50_000),
        ((UNBOUNDED, UNBOUNDED), 10_000, UNBOUNDED),
    ],
)
def test_the_soft_limit_is_raised_and_the_hard_one_is_kept(
    limits: tuple[int, int],
    room: int,
    soft: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = list(limits)
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(now))
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: now.__setitem__(slice(None), given))
    assert room_for_connections(10_000) == room
    assert tuple(now) == (soft, limits[1])
    assert bool(caplog.records) == (room < 10_000)
