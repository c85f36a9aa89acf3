"""The name under which Quercus is installed, and the command that installs a part of it."""

from __future__ import annotations

from typing import Final

DISTRIBUTION: Final = "quercus"
"""The name in pyproject.toml; the imported package is called ``quercus`` in any case."""


def install_command(*extras: str) -> str:
    """Return the command that installs Quercus with these extras.

    Parameters
    ----------
    extras
        Names of extras of pyproject.toml.

    Examples
    --------
    >>> install_command("server", "postgres")
    "pip install 'quercus[server,postgres]'"
    """
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"
