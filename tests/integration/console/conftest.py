from collections.abc import Iterator

import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Visitor


@pytest.fixture(scope="session")
def shared_console(shared_server: Serving) -> Iterator[ConsoleProcess]:
    """One console beside the shared server, which asks for no token."""
    console = ConsoleProcess(shared_server.address)
    yield console
    said = console.stop()
    assert console.process.returncode == 0
    assert "Traceback" not in said


@pytest.fixture
def visitor(shared_console: ConsoleProcess) -> Visitor:
    return Visitor(shared_console.port)


@pytest.fixture
def ann(visitor: Visitor) -> Visitor:
    assert visitor.sign_in(name="ann").status == 303
    return visitor
