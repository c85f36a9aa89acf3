"""Values of parameters in messages."""

from numbers import Integral, Real
from typing import Any, Final

from quercus.v1 import model_pb2

NUMBER_OF_KIND: Final = {
    bool: model_pb2.PARAMETER_KIND_BOOLEAN,
    int: model_pb2.PARAMETER_KIND_INTEGER,
    float: model_pb2.PARAMETER_KIND_NUMBER,
    str: model_pb2.PARAMETER_KIND_TEXT,
}
"""The numbers of the types of parameters."""


def parameter_message(value: Any) -> model_pb2.Parameter:
    """Return the message for a value: None, a truth value, a number, a text, or a list of these.

    Raises
    ------
    TypeError
        For a value of another type.
    ValueError
        For a whole number that has more than 64 bits.
    """
    match value:
        case None:
            return model_pb2.Parameter()
        case bool():
            return model_pb2.Parameter(boolean=value)
        case Integral():
            whole = int(value)
            return (
                model_pb2.Parameter(unsigned=whole) if whole >= 2**63 else model_pb2.Parameter(integer=whole)
            )
        case Real():
            return model_pb2.Parameter(number=float(value))
        case str():
            return model_pb2.Parameter(text=value)
        case list() | tuple():
            return model_pb2.Parameter(list=model_pb2.ParameterList(values=map(parameter_message, value)))
        case _:
            raise TypeError("must be a truth value, a number, a text, or a list of these")


def parameter_value(message: model_pb2.Parameter) -> Any:
    """Return the value in a message.

    Examples
    --------
    >>> [parameter_value(parameter_message(value)) for value in (None, True, 2**63, 0.5, "half", (1, 2))]
    [None, True, 9223372036854775808, 0.5, 'half', [1, 2]]
    """
    kind = message.WhichOneof("value")
    if kind == "list":
        return [parameter_value(each) for each in message.list.values]
    return None if kind is None else getattr(message, kind)
