"""Quercus: streaming active learning with evidential decision trees.

The parts live in subpackages (``quercus.client``, ``quercus.server``, ...); importing this package imports none of them.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("quercus")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
