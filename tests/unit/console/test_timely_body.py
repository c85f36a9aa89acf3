"""The time that a form has before it is known who sends it."""

import asyncio

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message

from quercus.console import guard


def test_a_form_that_trickles_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However steadily its bytes arrive; the end of the connection is waited for without a bound."""
    monkeypatch.setattr(guard, "SIGN_IN_S", 0.2)

    async def read(parts: int) -> int:
        async def receive() -> Message:
            nonlocal parts
            parts -= 1
            await asyncio.sleep(0.05 if parts >= 0 else 0.3)
            return {"type": "http.request", "body": b"x", "more_body": parts > 0}

        body, count = guard._timely_body(receive), 0
        while (await body())["more_body"]:
            count += 1
        await body()
        return count

    assert asyncio.run(read(2)) == 1
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read(1_000))
    assert refused.value.status_code == 408
