"""Interceptors joined into one do what they do one after the other."""

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from quercus.server.gate.handlers import Handler, Joined, WrappingInterceptor, wrap_handler


class Naming(WrappingInterceptor):
    """Writes its name before and after what is further in."""

    def __init__(self, name: str, refused: str = "") -> None:
        self._name = name
        self._refused = refused
        self.made = 0

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        self.made += 1

        def around(behaviour: Any, _: bool) -> Any:
            async def named(request: str, context: Any) -> str:
                return f"{self._name}({await behaviour(request, context)})"

            return named

        return wrap_handler(handler, unary=around, stream=around)


class Refusing(Naming):
    async def admit(self, details: Any, handler: Handler) -> Handler:
        if details.caller != self._refused:
            return handler

        async def refuse(requests: Any, context: Any) -> str:
            return "refused"

        return REFUSALS.setdefault(details.method, grpc.stream_unary_rpc_method_handler(refuse))


REFUSALS: dict[str, Handler] = {}


async def echo(request: str, context: Any) -> str:
    return request


HANDLER: Handler = grpc.unary_unary_rpc_method_handler(echo)


async def find(details: Any) -> Handler:
    return HANDLER if details.method == "/m" else None


async def said(find_handler: Any, caller: str, method: str = "/m") -> str | None:
    handler = await find_handler(SimpleNamespace(method=method, caller=caller))
    if handler is None:
        return None
    found: str = await (handler.unary_unary or handler.stream_unary)("call", None)
    return found


@pytest.mark.parametrize(
    ("caller", "method", "expected"),
    [
        ("ann", "/m", "a(b(c(d(call))))"),
        ("bob", "/m", "a(b(refused))"),
        ("eve", "/m", "refused"),
        ("ann", "/n", None),
    ],
)
def test_joined_as_one_after_the_other(caller: str, method: str, expected: str | None) -> None:
    parts = [Refusing("a", "eve"), Naming("b"), Refusing("c", "bob"), Naming("d")]
    chained: Any = find
    for part in reversed(parts):
        chained = lambda details, part=part, inner=chained: Joined(part).intercept_service(inner, details)  # noqa: E731
    joined = Joined(*parts)
    assert asyncio.run(said(chained, caller, method)) == expected
    assert (
        asyncio.run(said(lambda details: joined.intercept_service(find, details), caller, method)) == expected
    )


def test_a_method_is_wrapped_once() -> None:
    part = Naming("a")
    joined = Joined(part, Refusing("b", "bob"))

    async def call() -> None:
        for caller in ("ann", "bob", "ann", "bob"):
            await said(lambda details: joined.intercept_service(find, details), caller)

    asyncio.run(call())
    assert part.made == 2  # the handler of the method, and the one that refuses
