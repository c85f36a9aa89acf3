"""The checked-in synchronous client is what `make client` generates from the asyncio client."""

import re

from quercus.client.generate_sync import GENERATED, generated_modules


def test_the_synchronous_client_is_current() -> None:
    fresh = generated_modules()
    assert {path.name for path in fresh} == {path.name for path in GENERATED.glob("[!_]*.py")}
    stale = [path.name for path, content in fresh.items() if path.read_text() != content]
    assert not stale, "run `make client`"


def test_nothing_asynchronous_is_left_in_it() -> None:
    for path in GENERATED.glob("[!_]*.py"):
        assert not re.search(r"(?i)async|await|\baio\b", path.read_text().partition("\n")[2]), path.name
