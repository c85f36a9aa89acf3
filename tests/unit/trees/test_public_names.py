"""`quercus.trees` has the names that others use, each imported at its first use."""

import subprocess
import sys
from pkgutil import iter_modules
from types import FunctionType

import pytest

import quercus.trees


@pytest.mark.parametrize("name", quercus.trees.__all__)
def test_a_public_name_is_there(name: str) -> None:
    found = getattr(quercus.trees, name)
    if isinstance(found, type | FunctionType):  # and no alias of a type, nor a constant
        assert found.__name__ == name
        assert found.__module__.startswith("quercus.trees.")


def test_no_public_name_is_that_of_a_room() -> None:
    """The import of a room sets an attribute of its name, which would hide the public one."""
    rooms = {each.name for each in iter_modules(quercus.trees.__path__)}
    assert "growth" in rooms
    assert not rooms & set(quercus.trees.__all__)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match=r"'quercus\.trees' has no attribute 'leaves'"):
        quercus.trees.leaves  # noqa: B018 - it is looked up


def test_the_package_alone_imports_nothing_heavy() -> None:
    code = "import sys, quercus.trees; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "scipy"}.intersection(loaded.split())


def test_a_name_survives_the_import_of_the_rooms() -> None:
    rooms = "import quercus.trees.growth.stream, quercus.trees.learners.learner"
    code = f"{rooms}; from quercus.trees import fit, grow; assert callable(grow) and callable(fit)"
    subprocess.run([sys.executable, "-c", code], check=True)
