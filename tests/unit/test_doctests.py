"""Every example in a docstring runs, under the import name that users see."""

import doctest
import importlib
import pkgutil

import pytest

import quercus

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(quercus.__path__, "quercus.")
    if not module.name.startswith(("quercus.proto.v1.", "quercus.storage.migrations"))
    and "__main__" not in module.name
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
