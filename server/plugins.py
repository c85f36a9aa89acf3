"""The packages whose plug-ins a server and its processes load."""

from __future__ import annotations

import os
from typing import Final

from quercus.specification.environment import PREFIX
from quercus.specification.plugins import use_packages
from quercus.specification.server import PLUGINS

_VARIABLE: Final = PREFIX + PLUGINS.name.upper()


def choose_plugins(packages: str) -> None:
    """Load the plug-ins of the packages that a configuration names, in this process and in those that it starts.

    Raises
    ------
    PluginError
        When one of them is not installed, or brings no plug-in.
    """
    names = [name.strip() for name in packages.split(",") if name.strip()]
    use_packages(names or None)
    os.environ[_VARIABLE] = packages


def choose_inherited_plugins() -> None:
    """Load the plug-ins that the server has chosen which started this process."""
    choose_plugins(os.environ.get(_VARIABLE, ""))
