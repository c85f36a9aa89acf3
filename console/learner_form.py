"""The part of the form of a new model that chooses its learner: a field for all that the server declares of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quercus.client.results import Learner, Strategy
from quercus.specification.learners import DEFAULT
from quercus.specification.parameter import Parameter

LEARNER: Final = "learner"
BASE: Final = "learner.base"
STRATEGY: Final = "strategy"
"""Paths of the learner, of the learner of each tree, and of the strategy in a specification."""
NONE: Final = "none"
"""Text of a parameter that is to have no value."""


@dataclass(frozen=True)
class Setting:
    """A field of the form for a declared parameter.

    Parameters
    ----------
    name
        Path of the parameter in a specification, which is the name of the field too.
    parameter
        Its declaration.
    text
        What was typed or chosen; empty: the default.
    fault
        The server's reason to refuse that; empty if it did not.
    """

    name: str
    parameter: Parameter
    text: str = ""
    fault: str = ""

    @property
    def label(self) -> str:
        """Its name, as errors have it."""
        return self.parameter.name.replace("_", " ")

    @property
    def takes_none(self) -> bool:
        """Tells whether no value can be chosen, and is not the default anyway."""
        return bool(self.parameter.meaning_of_none) and self.parameter.default is not None

    @property
    def options(self) -> Mapping[str, str]:
        """The values that can be chosen, each with its words; empty if a value is typed.

        Examples
        --------
        >>> Setting("learner.early", Parameter("early", bool, True, "Stop early")).options
        {'': 'default: yes', 'true': 'yes', 'false': 'no'}
        """
        if self.parameter.kind is bool:
            chosen = {"true": "yes", "false": "no"}
        elif self.parameter.kind is str:
            chosen = {each: each for each in self.parameter.choices}
        else:
            chosen = {}
        if not chosen:
            return {}
        none = {NONE: f"none: {self.parameter.meaning_of_none}"} if self.takes_none else {}
        return {"": self._default_text()} | chosen | none

    @property
    def words(self) -> tuple[str, ...]:
        """Words that may be typed in place of a number."""
        return (*self.parameter.choices, *((NONE,) if self.takes_none else ()))

    @property
    def input_mode(self) -> str:
        """The keyboard that a phone shows."""
        if self.words or self.parameter.kind is str:
            return "text"
        return "numeric" if self.parameter.kind is int else "decimal"

    @property
    def hint(self) -> str:
        """The meaning of the parameter, and what may be typed.

        Examples
        --------
        >>> Setting("learner.depth", Parameter("depth", int, 7, "Depth", 0, 9, meaning_of_none="no limit")).hint
        'Depth; must be a whole number in [0, 9], or none: no limit. Default: 7.'
        """
        if self.options:
            return f"{self.parameter.description}."
        none = f", or none: {self.parameter.meaning_of_none}" if self.takes_none else ""
        default = self._default_text().capitalize()
        return f"{self.parameter.description}; {self.parameter.bound_text}{none}. {default}."

    @property
    def value(self) -> object:
        """The typed text as a value of its kind; what is none is sent as it is, for the server to refuse."""
        return _typed_value(self.parameter, self.text)

    def _default_text(self) -> str:
        default = self.parameter.default
        if default is None:
            return f"default: {self.parameter.meaning_of_none}"
        if isinstance(default, bool):
            return f"default: {'yes' if default else 'no'}"
        return f"default: {default}"


def _typed_value(parameter: Parameter, text: str) -> object:
    if text == NONE and parameter.meaning_of_none:
        return None
    if parameter.kind is bool:
        return {"true": True, "false": False}.get(text, text)
    for kind in (int, float) if parameter.kind in (int, float) else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class LearnerForm:
    """The learners that can be chosen, what is chosen, and what is wrong with it.

    A field is named as its parameter in the specification, such as ``learner.base.max_cuts``, so a fault that the
    server finds stands beside the field.

    Parameters
    ----------
    learners
        The learners of the server.
    given
        Fields of the form by name; of a parameter that is not given, the default counts.
    faults
        Reasons by the path of a field in the specification.
    """

    learners: Sequence[Learner]
    given: Mapping[str, Any]
    faults: Mapping[str, str]

    @property
    def choices(self) -> Sequence[Learner]:
        """The learners, the default first."""
        return sorted(self.learners, key=lambda each: each.name != DEFAULT)

    @property
    def learner(self) -> Learner:
        """The chosen learner; the default if it is none of the server's."""
        return self._named(self._text(f"{LEARNER}.name")) or self.choices[0]

    @property
    def base(self) -> Learner | None:
        """The chosen base of a forest; None if there is none, or it is the forest's default."""
        name = self._text(f"{BASE}.name")
        return self._named(name) if name in self.learner.bases else None

    @property
    def settings(self) -> list[Setting]:
        """The fields of the learner."""
        return self._settings_of(self.learner, LEARNER)

    @property
    def base_settings(self) -> list[Setting]:
        """The fields of the base."""
        return [] if self.base is None else self._settings_of(self.base, BASE)

    @property
    def strategy(self) -> Strategy | None:
        """The chosen strategy; the learner's default if it is none of its own. None: the learner has none."""
        possible, name = self.learner.strategies, self._text(f"{STRATEGY}.name")
        return next((each for each in possible if each.name == name), next(iter(possible), None))

    @property
    def strategy_settings(self) -> list[Setting]:
        """The fields of the strategy."""
        return [] if self.strategy is None else self._settings_of(self.strategy, STRATEGY)

    @property
    def is_touched(self) -> bool:
        """Tells whether anything but the default is chosen, or refused."""
        return (
            self.learner.name != DEFAULT
            or any(self.fault(each) for each in self.faults)
            or any(
                value for name, value in self.given.items() if _is_ours(name) and name != f"{LEARNER}.name"
            )
        )

    def fault(self, name: str) -> str:
        """Return why the server refuses a field of this part of the form; empty if it does not."""
        return self.faults.get(name, "") if _is_ours(name) else ""

    def check(self) -> None:
        """Refuse what the server would refuse of the chosen learner's parameters, with its words.

        Raises
        ------
        InvalidInput
            Naming the first field whose value is not allowed.
        """
        for each in self._all_settings:
            if each.text:
                each.parameter.check(each.value, each.name)

    def fields(self) -> dict[str, Any]:
        """Return what a specification gets of this part of the form.

        What was typed for another learner is sent too: the server says that this one has no such parameter.
        """
        known = {each.name: each for each in self._all_settings}
        parts: dict[str, dict[str, Any]] = {LEARNER: {}, BASE: {}, STRATEGY: {}}
        for name in filter(_is_ours, self.given):
            if text := self._text(name):
                path, _, key = name.rpartition(".")
                parts.get(path, parts[LEARNER])[key] = known[name].value if name in known else text
        learner, strategy = parts[LEARNER], parts[STRATEGY]
        if parts[BASE]:
            learner["base"] = parts[BASE]
        if learner:
            learner.setdefault("name", self.learner.name)
        if strategy and self.strategy is not None:
            strategy.setdefault("name", self.strategy.name)
        return {"learner": learner or None, "strategy": strategy or None}

    @property
    def _all_settings(self) -> list[Setting]:
        return [*self.settings, *self.base_settings, *self.strategy_settings]

    def _settings_of(self, declared: Learner | Strategy, path: str) -> list[Setting]:
        named = [(f"{path}.{each.name}", each) for each in declared.parameters]
        return [Setting(name, each, self._text(name), self.fault(name)) for name, each in named]

    def _named(self, name: str) -> Learner | None:
        return next((each for each in self.learners if each.name == name), None)

    def _text(self, name: str) -> str:
        return str(self.given.get(name, "")).strip()


def _is_ours(name: str) -> bool:
    """Return whether a field is one of this part of the form."""
    return name.startswith((f"{LEARNER}.", f"{STRATEGY}."))
