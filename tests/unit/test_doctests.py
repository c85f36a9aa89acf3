"""Every example in a docstring runs, under the import name that users see."""

import doctest
import importlib

import pytest
from support.checkout import PARTS, ROOT

MODULES = sorted(
    ".".join(("quercus", part, *file.relative_to(ROOT / folder).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for part, folder in PARTS.items()
    for file in (ROOT / folder).rglob("*.py")
    if file.stem != "__main__" and ">>>" in file.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), report=True)
    assert failed == 0


def test_there_are_examples() -> None:
    found = sum(
        doctest.testmod(importlib.import_module(name)).attempted for name in MODULES if "belief" in name
    )
    assert found >= 10
