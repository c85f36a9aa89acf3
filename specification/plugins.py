"""Plug-ins by name: learners, strategies and readers of files, of Quercus and of other packages.

A package declares a plug-in as an entry point of a group such as ``quercus.learners``: the entry point has the name of
the plug-in, and its value is the class. Names are read from the metadata of the installed packages; a plug-in is
imported when it is used.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, Final, TypeVar, cast

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.distribution import DISTRIBUTION
from quercus.specification.parameter import Parameter, check_parameters, parameters_of

LEARNERS: Final = "quercus.learners"
STRATEGIES: Final = "quercus.strategies"
READERS: Final = "quercus.readers"
GROUPS: Final = (LEARNERS, STRATEGIES, READERS)

NAMES: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""Names of learners and strategies. They have no ``_``, since users may write ``_`` for ``-``, as in Python."""


class Plugin:
    """A learner or a query strategy, whose fields are its parameters. Subclasses are `parametric`.

    Attributes
    ----------
    group
        Group of its entry point.
    noun
        Kind of plug-in in messages: learner or strategy.
    name
        Name of its entry point.
    of_the_model
        Names of the parameters that it takes from the specification of the model.
    """

    __slots__ = ()

    group: ClassVar[str]
    noun: ClassVar[str]
    name: ClassVar[str]
    of_the_model: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_parameters(self)


P = TypeVar("P", bound=Plugin)


class PluginError(Exception):
    """A plug-in cannot be used, since no package or two provide it, or it cannot be imported.

    Parameters
    ----------
    reason
        The reason, as the end of a sentence about its name.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Choice:
    """The packages whose plug-ins this process uses; None for all that are installed."""

    packages: frozenset[str] | None = None


def use_packages(names: Iterable[str] | None) -> None:
    """Use only the plug-ins of these packages and of Quercus in this process; None for all that are installed.

    Raises
    ------
    PluginError
        If a package is not installed, or provides no plug-in.
    """
    _Choice.packages = None
    plugins.cache_clear()
    load_plugin.cache_clear()
    _installed_packages.cache_clear()
    if names is None:
        return
    wanted, known = frozenset(names), _installed_packages()
    for name in sorted(wanted - known):
        have = ", ".join(sorted(known - {DISTRIBUTION})) or "none"
        raise PluginError(f"{name!r} is not an installed package with plug-ins; installed are: {have}")
    _Choice.packages = wanted | {DISTRIBUTION}
    plugins.cache_clear()


@cache
def _installed_packages() -> frozenset[str]:
    """Return the names of the installed packages with plug-ins, used or not."""
    return frozenset(package_of(each) for group in GROUPS for each in entry_points(group=group))


@cache
def plugins(group: str) -> tuple[EntryPoint, ...]:
    """Return the plug-ins of a group that this process uses, in order of their names, those of Quercus first."""
    used = (
        each
        for each in entry_points(group=group)
        if _Choice.packages is None or package_of(each) in _Choice.packages
    )
    return tuple(sorted(used, key=lambda each: (package_of(each) != DISTRIBUTION, each.name, each.value)))


def plugin_names(group: str) -> tuple[str, ...]:
    """Return the names of the plug-ins of a group, those of Quercus first."""
    return tuple(dict.fromkeys(each.name for each in plugins(group)))


def plugins_called(group: str, name: str) -> tuple[EntryPoint, ...]:
    """Return the plug-ins with a name; if there is none, those with ``_`` instead of ``-``."""
    alike = tuple(each for each in plugins(group) if name in {each.name, each.name.replace("_", "-")})
    return tuple(each for each in alike if each.name == name) or alike


def plugin(group: str, name: str) -> EntryPoint:
    """Return a plug-in by its name.

    Raises
    ------
    PluginError
        If there is none, or two.
    """
    found = plugins_called(group, name)
    if not found:
        raise PluginError(f"must be one of {', '.join(plugin_names(group))}")
    if len(found) > 1:
        raise PluginError(f"is brought by {' and '.join(map(origin_of, found))}: uninstall one of them")
    return found[0]


@cache
def load_plugin(group: str, name: str, kind: type | None = None) -> object:
    """Import a plug-in.

    Parameters
    ----------
    group, name
        Its group and its name.
    kind
        Class of which it must be a subclass; None for any.

    Raises
    ------
    PluginError
        If there is none, or two, its name does not match `NAMES`, it cannot be imported, or it is not a subclass of
        `kind`.
    """
    entry = plugin(group, name)
    if group != READERS and not NAMES.fullmatch(entry.name):
        rule = (
            "not a name of lower-case letters, digits and single hyphens between them: rename its entry point"
        )
        raise PluginError(f"is brought by {origin_of(entry)} as {shown(entry.name)}, which is {rule}")
    try:
        loaded = entry.load()
    except Exception as error:  # whatever the code of another package raises
        raise PluginError(f"is brought by {origin_of(entry)}, which cannot be imported: {error}") from error
    if kind is not None and (fault := _fault_of_class(loaded, name, kind)):
        raise PluginError(f"is brought by {origin_of(entry)}, which {fault}")
    return loaded


def _fault_of_class(loaded: object, name: str, kind: type) -> str:
    """Return the fault of the class of a plug-in, as the end of a sentence; empty if there is none."""
    if not (isinstance(loaded, type) and issubclass(loaded, kind)):
        return f"is not derived from {kind.__module__}.{kind.__qualname__}"
    if "__dataclass_params__" not in vars(loaded):
        return "is not decorated with quercus.specification.parameter.parametric"
    if getattr(loaded, "name", None) != name:
        return f"calls itself {getattr(loaded, 'name', None)!r}"
    return ""


def package_of(entry: EntryPoint) -> str:
    """Return the name of the package that provides a plug-in."""
    return "" if entry.dist is None else entry.dist.name


def foreign_package(group: str, name: str) -> str:
    """Return the package, with its version, that provides a plug-in of this name; empty for Quercus."""
    entry = plugin(group, name)
    return (
        ""
        if entry.dist is None or package_of(entry) == DISTRIBUTION
        else f"{entry.dist.name} {entry.dist.version}"
    )


def missing_package(kind: str, package: str) -> str:
    """Return the error about a learner or strategy of a stored model whose package was removed from the server.

    Only a stored model refers to the package, with its version. An unknown name at the creation of a model "must be one
    of" the installed ones.
    """
    name = package.partition(" ")[0]
    if _Choice.packages is not None and name in _installed_packages() - _Choice.packages:
        why, remedy = "this server does not use", f"Add {name} to its setting plugins"
    else:
        why, remedy = "is not installed on this server", f"Install it (pip install {name})"
    return f"a {kind} of the package {package}, which {why}. {remedy} and restart the server."


def origin_of(entry: EntryPoint) -> str:
    """Return the origin of a plug-in: its object, and the package that provides it."""
    package = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
    return f"{entry.value}{package}"


def plugin_class(kind: type[P], name: str, package: str = "") -> type[P]:
    """Return the class of a learner or strategy by its name.

    Parameters
    ----------
    kind
        Its base class, which determines the group.
    name
        The name.
    package
        The package that provided it when the model was created, with its version; empty for Quercus.

    Raises
    ------
    InvalidInput
        If no package or two provide it, or it cannot be imported.
    """
    try:
        return cast("type[P]", load_plugin(kind.group, name, cast(type, kind)))
    except PluginError as error:
        is_missing = package and name not in plugin_names(kind.group)
        reason = missing_package(kind.noun, package) if is_missing else error.reason
        raise InvalidInput("name", f"is {shown(name)}, {reason}") from None


def plugin_classes(kind: type[P]) -> dict[str, type[P]]:
    """Return the classes of all learners or strategies that can be imported, by name."""
    found = {}
    for name in plugin_names(kind.group):
        try:
            found[name] = plugin_class(kind, name)
        except InvalidInput:
            continue  # `quercus doctor` says why
    return found


def served_parameters(kind: type[Plugin]) -> tuple[Parameter, ...]:
    """Return the parameters of a learner or a strategy that a model sets, besides its own.

    Examples
    --------
    >>> from quercus.specification.learners import SpecifiedLearner
    >>> [each.name for each in served_parameters(plugin_class(SpecifiedLearner, "c45"))]
    ['max_cuts', 'min_branch', 'confidence']
    """
    return tuple(
        each for each in parameters_of(kind) if each.is_served and each.name not in kind.of_the_model
    )
