"""The part of the form of a new model that chooses its learner, with a field for every declared parameter."""

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
"""Paths in a specification: of the learner, of the learner of each tree, and of the strategy."""
NONE: Final = "none"
"""Text that stands for no value."""


@dataclass(frozen=True)
class Setting:
    """A field of the form for a declared parameter.

    Parameters
    ----------
    name
        Path of the parameter in a specification, which is also the name of the field.
    parameter
        Its declaration.
    text
        The typed or chosen text; empty: the default.
    fault
        The server's reason to refuse the text; empty if it did not.
    """

    name: str
    parameter: Parameter
    text: str = ""
    fault: str = ""

    @property
    def label(self) -> str:
        """Name of the parameter as in errors."""
        return self.parameter.name.replace("_", " ")

    @property
    def takes_none(self) -> bool:
        """True if "no value" can be chosen and is not already the default."""
        return bool(self.parameter.meaning_of_none) and self.parameter.default is not None

    @property
    def options(self) -> Mapping[str, str]:
        """The values that can be chosen, each with its label; empty if a value is typed.

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
        """Words that may be typed instead of a number."""
        return (*self.parameter.choices, *((NONE,) if self.takes_none else ()))

    @property
    def input_mode(self) -> str:
        """The kind of keyboard that a phone shows."""
        if self.words or self.parameter.kind is str:
            return "text"
        return "numeric" if self.parameter.kind is int else "decimal"

    @property
    def hint(self) -> str:
        """The meaning of the parameter, and the values that may be typed.

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
        """The typed text as a value of the right type; an invalid text is sent unchanged, for the server to refuse."""
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
    """The available learners, the choices, and their faults.

    A field has the name of its parameter in the specification, such as ``learner.base.max_cuts``, so that a fault found
    by the server is shown beside the field.

    Parameters
    ----------
    learners
        The learners of the server.
    given
        Fields of the form by name; a parameter that is not given has its default.
    faults
        Reasons of refusal, by the path of a field in the specification.
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
        """The chosen learner; the default if the server does not have it."""
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
        """The chosen strategy; the learner's default if it does not have that one. None if the learner has none."""
        possible, name = self.learner.strategies, self._text(f"{STRATEGY}.name")
        return next((each for each in possible if each.name == name), next(iter(possible), None))

    @property
    def strategy_settings(self) -> list[Setting]:
        """The fields of the strategy."""
        return [] if self.strategy is None else self._settings_of(self.strategy, STRATEGY)

    @property
    def is_touched(self) -> bool:
        """True if anything other than the default is chosen, or refused."""
        return (
            self.learner.name != DEFAULT
            or any(self.fault(each) for each in self.faults)
            or any(
                value for name, value in self.given.items() if _is_ours(name) and name != f"{LEARNER}.name"
            )
        )

    def fault(self, name: str) -> str:
        """Return the reason why the server refuses a field of this part of the form; empty if it does not."""
        return self.faults.get(name, "") if _is_ours(name) else ""

    def check(self) -> None:
        """Refuse parameters of the chosen learner that the server would refuse, with the same messages.

        Raises
        ------
        InvalidInput
            Naming the first field whose value is not allowed.
        """
        for each in self._all_settings:
            if each.text:
                each.parameter.check(each.value, each.name)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the specification from this part of the form.

        Values typed for another learner are included: the server reports that this one has no such parameter.
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
    """Return whether a field belongs to this part of the form."""
    return name.startswith((f"{LEARNER}.", f"{STRATEGY}."))
