from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Visitor


@pytest.fixture(scope="session")
def uploads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the shared console keeps files that are uploaded, and nobody else does."""
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="session")
def shared_console(shared_server: Serving, uploads: Path) -> Iterator[ConsoleProcess]:
    """One console beside the shared server, which asks for no token."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TMPDIR", str(uploads))
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
