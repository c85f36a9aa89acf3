"""The words of enums: texts that people write, and numbers on the wire."""

from collections.abc import Iterable

from google.protobuf.descriptor import EnumDescriptor


def words_of(enum: EnumDescriptor, choices: Iterable[str]) -> dict[int, str]:
    """Return the choices by the number of the enum's value that ends in them.

    Examples
    --------
    >>> from quercus.v1 import model_pb2
    >>> words_of(model_pb2.PruningKind.DESCRIPTOR, ("chi-square", "likelihood"))
    {1: 'chi-square', 2: 'likelihood'}
    """
    ends = {f"_{choice.upper().replace('-', '_')}": choice for choice in choices}
    return {
        value.number: choice
        for value in enum.values
        for end, choice in ends.items()
        if value.name.endswith(end)
    }
