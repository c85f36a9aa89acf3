"""Quercus: streaming active learning with evidential decision trees.

The parts live in subpackages (``quercus.client``, ``quercus.server``, ...); importing this package imports none of them.
"""

__all__ = ["__version__"]
__version__: str


def __getattr__(name: str) -> str:
    """The version, looked up when it is asked for: reading metadata costs a tenth of a second."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    from quercus.specification.distribution import DISTRIBUTION  # noqa: PLC0415

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a checkout that was never installed
        return "0+unknown"
