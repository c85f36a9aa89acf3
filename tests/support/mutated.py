"""Messages that are nearly right: made from right ones by changing a few fields, from their type alone, or spoilt."""

from __future__ import annotations

import random
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor

TEXTS: Final = ["a", "b", "o", "s", "ann", "row-1", "é\u0000", " ", "x" * 300, "?", "latest", "info", "m", ""]
INTEGERS: Final = [0, 1, 2, 3, 7, 100, 1000, 65535, 2**31 - 1, -1]
DOUBLES: Final = [0.0, 1.0, 0.5, -1.0, 2.0, 1e308, float("nan"), float("inf"), -float("inf"), 5e-324]
Rng = random.Random


def names(model: str) -> list[str]:
    """Names of resources that exist, that do not, and invalid ones."""
    of = f"models/{model}"
    return [
        of, f"{of}/queries/1", f"{of}/instances/row-1", f"{of}/trees/latest", f"{of}/trees/1", model, "models/none",
        "models/-", "models/", "", f"{of}/", f"{of}/queries/-1", f"{of}/queries/99999999999999999999",
    ]  # fmt: skip


class Maker:
    """Makes messages.

    Parameters
    ----------
    rng : source of random numbers.
    model : that names speak of.
    """

    def __init__(self, rng: Rng, model: str) -> None:
        self.rng = rng
        self._names = names(model)

    def bytes(self, right: Any) -> bytes:
        """Return a valid message, in most cases changed."""
        kind = self.rng.random()
        if kind < 0.2:
            made = self._message(right.DESCRIPTOR)
        else:
            made = type(right)()
            made.CopyFrom(right)
            for _ in range(self.rng.choice((0, 1, 1, 1, 2, 4)) if kind < 0.9 else 0):
                self._change(made)
        data: bytes = made.SerializeToString()
        return self._spoilt(data) if kind > 0.85 else data

    def _change(self, made: Any) -> None:
        """Change, fill or clear one field of a message, or of one inside it."""
        fields = made.DESCRIPTOR.fields
        if not fields:
            return
        field = self.rng.choice(fields)
        inner = field.message_type is not None and not _is_map(field)
        if inner and self.rng.random() < 0.7:
            value = getattr(made, field.name)
            if not field.is_repeated:
                if made.HasField(field.name) or self.rng.random() < 0.3:
                    self._change(value)
                return
            if value:
                self._change(self.rng.choice(value))
                return
        value = getattr(made, field.name)
        if field.is_repeated and not _is_map(field) and value and self.rng.random() < 0.5:
            self._bend(value, field)
            return
        made.ClearField(field.name)
        if self.rng.random() < 0.8:
            self._fill(made, field, 1)

    def _bend(self, values: Any, field: FieldDescriptor) -> None:
        """Drop, double or change one of several values."""
        at = self.rng.randrange(len(values))
        match self.rng.randrange(3):
            case 0:
                del values[at]
            case 1:
                values.extend([values[at]])
            case _ if field.message_type is None:
                values[at] = self._scalar(field)

    def _message(self, descriptor: Any, depth: int = 0) -> Any:
        """Return a message of a type, each field there or not, with values often right and often extreme."""
        made = message_factory.GetMessageClass(descriptor)()
        for field in descriptor.fields:
            if self.rng.random() >= (0.35 if depth else 0.2) and depth <= 5:
                self._fill(made, field, depth)
        return made

    def _fill(self, made: Any, field: FieldDescriptor, depth: int) -> None:
        if _is_map(field):
            value = field.message_type.fields_by_name["value"]
            for _ in range(self.rng.randrange(3)):
                key = self.rng.choice(TEXTS)
                if value.message_type is not None:
                    getattr(made, field.name)[key].CopyFrom(self._message(value.message_type, depth + 1))
                else:
                    getattr(made, field.name)[key] = self._scalar(value)
        elif field.is_repeated:
            count = self.rng.choice((0, 1, 2, 3, 6, 12, 40))
            if field.message_type is not None:
                values = [self._message(field.message_type, depth + 1) for _ in range(min(count, 3))]
            else:
                values = [self._scalar(field) for _ in range(count)]
            getattr(made, field.name).extend(values)
        elif field.message_type is not None:
            getattr(made, field.name).CopyFrom(self._message(field.message_type, depth + 1))
        else:
            setattr(made, field.name, self._scalar(field))

    def _scalar(self, field: FieldDescriptor) -> Any:
        """Return a value that fits the type of a field."""
        kind, rng = field.cpp_type, self.rng
        if kind == FieldDescriptor.CPPTYPE_STRING:
            if field.type == FieldDescriptor.TYPE_BYTES:
                return rng.randbytes(rng.randrange(20))
            named = field.name in ("name", "model", "parent", "instance")
            return rng.choice(self._names if named and rng.random() < 0.7 else TEXTS)
        if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
            return rng.choice(DOUBLES)
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            return rng.randrange(-1, len(field.enum_type.values) + 1)
        value = rng.choice(INTEGERS)
        unsigned = kind in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)
        return abs(value) if unsigned else value

    def _spoilt(self, data: bytes) -> bytes:
        """Return bytes with some of them changed, doubled, cut out or put in."""
        cells, rng = bytearray(data), self.rng
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(cells) + 1)
            match rng.randrange(4):
                case 0 if at < len(cells):
                    cells[at] = rng.randrange(256)
                case 1:
                    cells[at:at] = rng.randbytes(rng.randrange(1, 9))
                case 2:
                    del cells[at : at + rng.randrange(1, 9)]
                case _:
                    cells[at:at] = cells[at : at + rng.randrange(1, 30)]
        return bytes(cells)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
