"""A page that takes long, and whose visitor leaves: the work ends, and no fault is logged."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request

from quercus.console.pages import why


async def gone() -> dict[str, str]:
    return {"type": "http.disconnect"}


def test_what_nobody_waits_for_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console has an answer to `ClientDisconnect`; to a task that is cancelled it has a stack trace."""
    monkeypatch.setattr(why, "LOOK_S", 0.01)

    async def leave() -> None:
        asked = asyncio.ensure_future(asyncio.Event().wait())

        async def ask() -> bool:
            return await asked

        with pytest.raises(ClientDisconnect):
            await why._unless_left(Request({"type": "http"}, gone), ask())
        await asyncio.wait({asked}, timeout=60)
        assert asked.cancelled()

    asyncio.run(leave())
