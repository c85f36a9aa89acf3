"""The measurements of `bench/` use names of the library that exist: most of them run only by hand."""

import re

import pytest
from mypy import api
from support.checkout import ROOT

BROKEN = re.compile(r"\[(attr-defined|name-defined)\]$")
OF_PEERS = '"object" has no attribute'  # models of other libraries have no type


def test_measurements_use_names_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = sorted(map(str, (ROOT / "bench").rglob("*.py")))
    assert len(files) > 20
    found, failure, _ = api.run(["--no-error-summary", "--no-pretty", "--no-color-output", *files])
    assert not failure
    broken = [line for line in found.splitlines() if BROKEN.search(line) and OF_PEERS not in line]
    assert not broken
