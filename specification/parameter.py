"""Parameters, each declared once with its name, default, bounds and description.

Checks, error messages, docstrings, command-line help and the tables of the documentation are made from declarations.
"""

import inspect
import math
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from quercus.belief.errors import InvalidInput, shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a model, of a learner or of a server.

    Parameters
    ----------
    name
        Name in Python, in messages and in files; on the command line with hyphens.
    kind
        Type of its values.
    default
        The value if none is given; `dataclasses.MISSING` if one must be given.
    description
        Description of the parameter, without the full stop.
    lowest, highest
        Bounds of a number. For free text, `lowest` is the minimum length.
    excludes_bounds
        Whether the bounds themselves are excluded.
    choices
        The allowed texts; an int accepts them in addition to numbers. A text parameter without choices is free text.
    meaning_of_none
        Meaning of None, as in "no limit". If empty, None is not allowed.
    is_served
        Whether models of the service have it; else only the library has it.
    is_fixed
        Whether it must not change after the model was created.
    """

    name: str
    kind: type
    default: Any
    description: str
    lowest: float = -math.inf
    highest: float = math.inf
    excludes_bounds: bool = False
    choices: tuple[str, ...] = ()
    meaning_of_none: str = ""
    is_served: bool = True
    is_fixed: bool = False

    def with_changes(self, **changes: Any) -> "Parameter":
        """Return a copy that differs in some fields."""
        return replace(self, **changes)

    @property
    def bound_text(self) -> str:
        """The allowed values in words.

        Examples
        --------
        >>> Parameter("budget", int, 0, "Most queries ever answered", 0, 9).bound_text
        'must be a whole number in [0, 9]'
        """
        if self.kind is bool:
            return "must be True or False"
        if self.choices and self.kind is str:
            return f"must be one of {', '.join(self.choices)}"
        if self.kind is str:
            return "must be text and not empty" if self.lowest > 0 else "must be text"
        pair = f"{self.lowest}, {self.highest}"
        interval = f"({pair})" if self.excludes_bounds else f"[{pair}]"
        if self.kind is float:
            return f"must lie in {interval}"
        words = f"one of {', '.join(self.choices)}, or " if self.choices else ""
        return f"must be {words}a whole number in {interval}"

    def check(self, value: Any, path: str | None = None) -> Any:
        """Return a value, converted to the type of the parameter.

        Parameters
        ----------
        value
            The given value.
        path
            Name for errors; the parameter's name by default.

        Raises
        ------
        InvalidInput
            If the value is not allowed.

        Examples
        --------
        >>> Parameter("alpha", float, 0.8, "Level of the likelihood cut", 0, 1).check(1.5)
        Traceback (most recent call last):
            ...
        quercus.belief.errors.InvalidInput: alpha: is 1.5, must lie in [0, 1]
        """
        if value is None and self.meaning_of_none:
            return None
        if not self._is_allowed(value):
            raise InvalidInput(path or self.name, f"is {shown(value)}, {self.bound_text}")
        return value if isinstance(value, str) else self.kind(value)

    def _is_allowed(self, value: object) -> bool:
        if isinstance(value, str):
            is_free = self.kind is str and not self.choices
            return value in self.choices or (is_free and len(value.strip()) >= self.lowest)
        if self.kind is bool or isinstance(value, bool):
            return self.kind is bool and isinstance(value, bool)
        # NumPy's numbers too, as grids of parameters hold them
        if self.kind is str or not isinstance(value, Integral if self.kind is int else Real):
            return False
        number: Any = value  # `Real` does not declare a comparison with a float
        if self.excludes_bounds:
            return bool(self.lowest < number < self.highest)
        return bool(self.lowest <= number <= self.highest)

    def dataclass_field(self) -> Any:
        """Return a field of a dataclass for this parameter."""
        return field(default=self.default, metadata={"parameter": self})


def parameter(
    default: Any,
    description: str,
    lowest: float = -math.inf,
    highest: float = math.inf,
    *,
    excludes_bounds: bool = False,
    choices: tuple[str, ...] = (),
    meaning_of_none: str = "",
) -> Any:
    """Return a field of a `parametric` class; the parameter has the name and the type of the field.

    The arguments are those of `Parameter`.
    """
    declared = Parameter(
        "", object, default, description, lowest, highest, excludes_bounds, choices, meaning_of_none
    )
    return declared.dataclass_field()


def _kind_of(hint: Any) -> type:
    """Return the type of a parameter with a type hint such as ``int | None`` or ``Literal["root"] | int``."""
    if get_origin(hint) is Literal:
        return type(get_args(hint)[0])
    parts = [_kind_of(each) for each in get_args(hint) if each is not type(None)]
    return next((each for each in parts if each is not str), parts[0]) if parts else hint


@dataclass_transform(frozen_default=True, field_specifiers=(parameter, field))
def parametric(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose fields are parameters, with a docstring that describes them.

    Examples
    --------
    >>> @parametric
    ... class Nearest:
    ...     '''Classes of the nearest rows.'''
    ...     neighbours: int = parameter(5, "Number of rows", 1, 100)
    >>> parameters_of(Nearest)[0].bound_text, Nearest(3)
    ('must be a whole number in [1, 100]', Nearest(neighbours=3))
    """
    hints = get_type_hints(cls)
    for name in inspect.get_annotations(cls):
        declared = getattr(cls.__dict__.get(name), "metadata", {}).get("parameter")
        if declared is not None and declared.kind is object:
            kind = _kind_of(hints[name])
            setattr(cls, name, declared.with_changes(name=name, kind=kind).dataclass_field())
    return with_parameter_docs(dataclass(frozen=True)(cls))  # slots would break `super()` without arguments


def parameters_of(cls: Any) -> tuple[Parameter, ...]:
    """Return the parameters of a dataclass, in order."""
    return tuple(each.metadata["parameter"] for each in fields(cls) if "parameter" in each.metadata)


def check_parameters(values: Any) -> None:
    """Check the parameters of a frozen dataclass, and convert each value to its type.

    Raises
    ------
    InvalidInput
        For the first parameter whose value is not allowed.
    """
    for parameter in parameters_of(values):
        object.__setattr__(values, parameter.name, parameter.check(getattr(values, parameter.name)))


def summary_of(cls: type) -> str:
    """Return the first sentence of a docstring."""
    return inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def with_parameter_docs(cls: type[T]) -> type[T]:
    """Add the parameters of a dataclass to its docstring, after those that it already describes."""
    text, raises, errors = inspect.cleandoc(cls.__doc__ or "").partition("\nRaises\n")
    if "\nParameters\n" not in text:
        text = f"{text.rstrip()}\n\nParameters\n----------\n"
    entries = "".join(f"{each.name}\n    {describe_parameter(each)}\n" for each in parameters_of(cls))
    cls.__doc__ = f"{text.rstrip()}\n{entries}" + (f"\n{raises.lstrip()}{errors}" if raises else "")
    return cls


def describe_parameter(parameter: Parameter) -> str:
    """Return the sentence, the bound and the default of a parameter.

    Examples
    --------
    >>> describe_parameter(Parameter("max_depth", int, None, "Depth of every leaf", 0, 9, meaning_of_none="no limit"))
    'Depth of every leaf; must be a whole number in [0, 9]. None: no limit. Default: None.'
    """
    none = f" None: {parameter.meaning_of_none}." if parameter.meaning_of_none else ""
    default = "" if parameter.default is MISSING else f" Default: {parameter.default!r}."
    return f"{parameter.description}; {parameter.bound_text}.{none}{default}"
