"""Belief trees with scikit-learn's interface; see docs/estimators.md.

The classes are imported when one is first used, so that the workers of `quercus.estimators.executors` start fast.
"""

if __name__ != "quercus.estimators":  # under another name every class would exist twice
    raise ImportError(f"import quercus.estimators, not {__name__}")

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from quercus.specification.distribution import install_command

if TYPE_CHECKING:
    from quercus.estimators.classifiers import *  # noqa: F403

if find_spec("sklearn") is None:  # a base installation has only the client
    raise ModuleNotFoundError(
        f"quercus.estimators needs scikit-learn: {install_command('estimators')}", name="sklearn"
    )


def __getattr__(name: str) -> Any:
    if name == "__all__" or name[0].isupper():
        return getattr(import_module(f"{__name__}.classifiers"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__getattr__("__all__")])
