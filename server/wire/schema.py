"""The schema of a model, by which its rows and labels are read: columns, vocabulary, frame."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from quercus.belief.frame import Frame
from quercus.proto.v1 import model_pb2
from quercus.specification.values import Spellings, canonical_text, is_truth
from quercus.storage import ModelRecord, Store


@dataclass(frozen=True)
class AttributeColumn:
    """One attribute.

    Attributes
    ----------
    name : name of the attribute.
    values : nominal values, declared first, then learned; None for a numeric attribute.
    declared : number of declared values.
    missing : whether a value may be missing.
    """

    name: str
    values: tuple[str, ...] | None
    declared: int
    missing: bool
    index: Mapping[str, int] = field(
        init=False, repr=False, compare=False
    )  # by the names as they are spelled

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {value: i for i, value in enumerate(self.values or ())})

    @cached_property
    def spellings(self) -> Spellings:
        """The names of its values, found by whatever a cell calls them."""
        return Spellings(self.values or ())

    def index_of(self, text: str) -> int | None:
        """Return the index of the value that a text means; ``None``: it is none that is known."""
        found = self.index.get(text)
        if found is None and (name := self.spellings.of(text)) is not None:
            return self.index[name]
        return found

    def new_name(self, text: str, learned: Collection[str]) -> str:
        """Return the name of a value that is not known, where those of `learned` are known too by now."""
        plain = canonical_text(text)
        if plain in learned:
            return plain
        name = self.spellings.name(text)
        return plain if name == plain or (learned and not is_truth(learned)) else name


@dataclass(frozen=True)
class ModelSchema:
    """The columns and the frame of one model.

    Attributes
    ----------
    model : id of the model.
    key : tells a model from an earlier one of the same name.
    columns : attributes of the model, in declared order.
    frame : classes of the model.
    uid : tells the same to clients.
    """

    model: str
    key: int
    columns: tuple[AttributeColumn, ...]
    frame: Frame
    uid: str = ""

    @cached_property
    def nominal_counts(self) -> tuple[tuple[int, int], ...]:
        """Place of each nominal attribute, and how many values of it are known."""
        return tuple((k, len(each.values)) for k, each in enumerate(self.columns) if each.values is not None)

    @classmethod
    def read(cls, store: Store, model: str) -> ModelSchema:
        """Read the schema of a model as it is now.

        To show rows, read it after them: then it names all their values, even if others store rows meanwhile.
        """
        return cls.of(store.get_model(model), store.vocabulary(model))

    @classmethod
    def of(cls, record: ModelRecord, vocabulary: Mapping[int, Sequence[str]]) -> ModelSchema:
        """Read the schema of a stored model.

        Parameters
        ----------
        record : the model as stored; its specification is a serialised ``quercus.v1.Specification``.
        vocabulary : nominal values learned after the model was declared, by attribute.
        """
        message = model_pb2.Specification.FromString(record.specification)
        columns = tuple(
            AttributeColumn(
                attribute.name,
                (*attribute.nominal.values, *vocabulary.get(k, ()))
                if attribute.HasField("nominal")
                else None,
                len(attribute.nominal.values),
                attribute.missing != model_pb2.MISSING_POLICY_REJECT,
            )
            for k, attribute in enumerate(message.attributes)
        )
        return cls(record.name, record.key, columns, Frame(tuple(message.classes)), record.uid)
