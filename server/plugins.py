"""The plug-ins that a server and its child processes load."""

from __future__ import annotations

import os
from typing import Final

from quercus.server.wire.errors import BadStart
from quercus.specification.environment import PREFIX
from quercus.specification.plugins import PluginError, use_packages
from quercus.specification.server import PLUGINS

_VARIABLE: Final = PREFIX + PLUGINS.name.upper()


def choose_plugins(packages: str) -> None:
    """Load the plug-ins of the named packages, in this process and in its children.

    Raises
    ------
    BadStart
        If a package is not installed, or has no plug-in; the message is for the user.
    """
    names = [name.strip() for name in packages.split(",") if name.strip()]
    try:
        use_packages(names or None)
    except PluginError as error:
        raise BadStart(f"{PLUGINS.name}: {error.reason}") from None
    os.environ[_VARIABLE] = packages


def choose_inherited_plugins() -> None:
    """Load the plug-ins that the server chose that started this process."""
    choose_plugins(os.environ.get(_VARIABLE, ""))
