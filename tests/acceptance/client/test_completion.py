"""The tab key: models and labellers as the server has them, words that options take; nothing where nothing answers."""

import os
import subprocess
import time
from pathlib import Path

from integration.client.serving import QUERCUS

from quercus.client import Client, Nominal, Specification, Statement


def completed(line: str, **environment: str) -> list[str]:
    """Return the completions that bash would offer for a line that ends at the cursor."""
    words = line.split(" ")
    done = subprocess.run(
        [QUERCUS],
        env=os.environ
        | {"_QUERCUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.stderr
    return done.stdout.split()


def pressed_until_offered(line: str, **environment: str) -> list[str]:
    """Press the key again while nothing is offered: it waits a second for a server, which a busy machine may exceed."""
    return next(filter(None, (completed(line, **environment) for _ in range(10))), [])


def test_models_and_labellers_of_the_server(server: str, name: str, tmp_path: Path) -> None:
    model = f"{name}-tab"
    with Client(server) as client:
        client.create_model(model, Specification([Nominal("a", ["x", "y"])], ["yes", "no"], budget=3))
        client.push(model, [{"a": "x"}], ids=["1"])
        client.state(model, [Statement("1", "yes")], labeller=f"anna-{name}")
    asked = {"QUERCUS_SERVER": server}
    assert pressed_until_offered(f"quercus tree {name}-t", **asked) == [model]
    assert pressed_until_offered(f"quercus models update {name}-t", **asked) == [model]
    labeller = f"anna-{name}"
    assert pressed_until_offered(f"quercus answers {model} --labeller {labeller}", **asked) == [labeller]
    assert pressed_until_offered(f"quercus tree --server {server} {name}-t") == [model]
    assert completed("quercus tree no-such-", **asked) == []


def test_words_that_options_take() -> None:
    assert completed("quercus models create m f.csv --strategy cov") == ["covering-committee"]
    assert completed("quercus models update m --strategy m") == ["margin", "memory-disagreement"]
    assert "active-forest" in completed("quercus models create m f.csv --learner a")
    assert completed("quercus tokens create ann --role lab") == ["labeller"]
    assert completed("quercus status --log-level w") == ["warning"]


def test_without_a_server_nothing_is_offered_and_soon() -> None:
    began = time.monotonic()
    assert completed("quercus tree w", QUERCUS_SERVER="127.0.0.1:1") == []
    assert time.monotonic() - began < 15  # a busy machine; alone it takes a second
