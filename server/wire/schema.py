"""The schema of a model: the columns and classes by which its rows and labels are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.labelling.shapes import NEVER_EXTENDED, Shapes
from quercus.server.wire.errors import Unavailable
from quercus.specification.attributes import other_names
from quercus.specification.parameters import MAX_VALUES
from quercus.specification.values import Spellings
from quercus.storage import ModelRecord, NotFound, Store
from quercus.v1 import model_pb2


@dataclass(frozen=True)
class AttributeColumn:
    """One attribute.

    Attributes
    ----------
    name : name of the attribute.
    values : nominal values, declared first, then learned; None for a numeric attribute.
    declared : number of declared values.
    missing : whether a value may be missing.
    most : most nominal values; as an index, it stands for any other name.
    has_bucket : whether names beyond `most` share a bucket; otherwise their rows are refused.
    """

    name: str
    values: tuple[str, ...] | None
    declared: int
    missing: bool
    most: int = MAX_VALUES
    has_bucket: bool = True
    index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {value: i for i, value in enumerate(self.values or ())})

    @cached_property
    def spellings(self) -> Spellings:
        """The values, found by any spelling."""
        return Spellings(self.index)

    @property
    def is_full(self) -> bool:
        """True if no further value can be learned."""
        return len(self.index) >= self.most

    @property
    def fills_bucket(self) -> bool:
        """True if names that are not values go to the bucket, from now on for ever."""
        return self.has_bucket and self.is_full

    @property
    def index_count(self) -> int:
        """Number of indices of stored values: those of the values, and of the bucket once the attribute is full."""
        return len(self.index) + self.fills_bucket

    @cached_property
    def other_names(self) -> str:
        """The text that stands for the bucket."""
        return other_names(self.index)

    def index_of(self, text: str) -> int | None:
        """Return the index of a text, in any spelling; None if it is unknown."""
        found = self.index.get(text)
        if found is not None:
            return found
        if self.fills_bucket and text == self.other_names:
            return self.most
        name = self.spellings.of(text)
        return None if name is None else self.index[name]

    def name_of(self, index: int) -> str:
        """Return the text of an index: a value, or that of the bucket."""
        return (self.values or ())[index] if index < self.most else self.other_names


@dataclass(frozen=True)
class ModelSchema:
    """The columns and the frame of one model.

    Attributes
    ----------
    model : id of the model.
    key : key of the model, which distinguishes it from earlier ones of the same name.
    columns : attributes of the model, in declared order.
    frame : classes of the model.
    uid : the same as `key`, for clients.
    learner : the learner, a serialised ``quercus.v1.Plugin``.
    shapes : shapes of the log; the newest is that of the columns and the frame.
    """

    model: str
    key: int
    columns: tuple[AttributeColumn, ...]
    frame: Frame
    uid: str = ""
    shapes: Shapes = NEVER_EXTENDED
    learner: bytes = field(default=b"", repr=False)

    @cached_property
    def refusal_of_uncertain(self) -> str:
        """The learner's reason to refuse rows with uncertain values; empty if it accepts them."""
        from quercus.server.wire.plugins import decode_learner  # noqa: PLC0415 - for the rare rows that need it

        if not self.learner:  # the schema is not of a stored model
            return ""
        try:
            return decode_learner(model_pb2.Plugin.FromString(self.learner)).refusal_of_uncertain
        except InvalidInput as error:
            return f"is uncertain, and whether the learner takes that is not known: {error.reason}"

    @property
    def identity(self) -> tuple[int, int]:
        """The key and the number of extensions of the model: data encoded for one identity fit no other."""
        return self.key, self.shapes.extensions

    def fits(self, record: ModelRecord) -> bool:
        """Return whether data read with a record of the model fit the classes and attributes of this schema."""
        return (record.key, record.shapes.extensions) == self.identity

    def check_record(self, record: ModelRecord) -> None:
        """Check that this schema describes data that were read with a record of the model.

        Raises
        ------
        NotFound
            If the record is of another model of the same name.
        Unavailable
            If the model was extended after this schema was read.
        """
        if record.key != self.key:
            raise NotFound("model", self.model, "any more: another has its name")
        if record.shapes.extensions != self.shapes.extensions:
            raise Unavailable(f"model {self.model} was just extended: send it again")

    @cached_property
    def nominal_counts(self) -> tuple[tuple[int, int], ...]:
        """The position of each nominal attribute, and its number of known values."""
        return tuple((k, len(each.values)) for k, each in enumerate(self.columns) if each.values is not None)

    @classmethod
    def read(cls, store: Store, model: str) -> ModelSchema:
        """Read the present schema of a model.

        To show rows, read the schema after them, so that it names all their values even if others store rows
        meanwhile.
        """
        return cls.of(store.get_model(model), store.vocabulary(model))

    @classmethod
    def of(cls, record: ModelRecord, vocabulary: Mapping[int, Sequence[str]]) -> ModelSchema:
        """Return the schema of a stored model.

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
                attribute.nominal.max_values or MAX_VALUES,
                attribute.nominal.overflow != model_pb2.OVERFLOW_POLICY_REFUSE,
            )
            for k, attribute in enumerate(message.attributes)
        )
        learner = message.learner.SerializeToString(deterministic=True)
        frame = Frame(tuple(message.classes))
        return cls(record.name, record.key, columns, frame, record.uid, record.shapes, learner)
