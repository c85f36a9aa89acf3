"""Conversion of specifications and models between wire and domain."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any, Final, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.belief.frame import Frame
from quercus.labelling.shapes import Shape
from quercus.server.wire.displays import check_guidance, check_presentation
from quercus.server.wire.limits import MessageLimits
from quercus.server.wire.names import model_name
from quercus.server.wire.plugins import (
    canonical_plugin,
    decode_learner,
    decode_strategy,
    is_absent,
    stored_strategy,
)
from quercus.server.wire.reports import stop_text
from quercus.specification import learners, parameters
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.learners import Pruning, SpecifiedLearner
from quercus.specification.model import CHANGEABLE, Specification
from quercus.specification.names import check_controls
from quercus.specification.parameter import parameters_of
from quercus.specification.parameters import MAX_VALUES
from quercus.specification.plugins import missing_package, plugin_class
from quercus.specification.strategies import DEFAULT_STRATEGY, strategy_class
from quercus.specification.values import canonical_names
from quercus.storage import Extension, ModelRecord
from quercus.v1 import model_pb2
from quercus.v1.words import words_of

DEFAULTS: Final = {
    each.name: each.default for each in parameters_of(Specification) if each.default is not None
}
_PARAMETERS: Final = tuple(each.name for each in parameters_of(Specification))
_PRUNING: Final = words_of(model_pb2.PruningKind.DESCRIPTOR, parameters.PRUNING_KIND.choices)
_MISSING: Final = words_of(model_pb2.MissingPolicy.DESCRIPTOR, parameters.MISSING_VALUE.choices)
_OVERFLOW: Final = words_of(model_pb2.OverflowPolicy.DESCRIPTOR, parameters.OVERFLOW.choices)


def complete_specification(
    message: model_pb2.Specification, max_values: int = MAX_VALUES
) -> model_pb2.Specification:
    """Return a copy with all defaults filled in, checked as a whole.

    Parameters
    ----------
    message : the specification as given.
    max_values : most values of a nominal attribute that does not say.

    Raises
    ------
    InvalidInput
        If it is invalid; the error names the field below ``specification``, the value and the bound.
    """
    full = model_pb2.Specification()
    full.CopyFrom(message)
    if full.learner == model_pb2.Plugin():
        full.learner.name = learners.DEFAULT
    with field_prefix("specification.learner"):
        learner = decode_learner(full.learner)
        full.learner.CopyFrom(canonical_plugin(type(learner), full.learner))
    if full.strategy == model_pb2.Plugin():
        full.strategy.name = DEFAULT_STRATEGY[learner.asks]
    with field_prefix("specification.strategy"):
        strategy = decode_strategy(full.strategy, learner.asks)
        full.strategy.CopyFrom(canonical_plugin(type(strategy), full.strategy))
    own = learner.own_defaults(len(full.classes))
    for field, value in {**DEFAULTS, **own}.items():
        if not full.HasField(field):  # type: ignore[arg-type]  # the keys are optional fields
            setattr(full, field, value)
    if full.HasField("pruning") and not full.pruning.HasField("level"):
        full.pruning.level = parameters.LEVEL.default
    for attribute in full.attributes:
        if attribute.missing == model_pb2.MISSING_POLICY_UNSPECIFIED:
            attribute.missing = model_pb2.MISSING_POLICY_BRANCH
        if attribute.HasField("nominal"):
            attribute.nominal.max_values = attribute.nominal.max_values or max_values
            attribute.nominal.overflow = attribute.nominal.overflow or model_pb2.OVERFLOW_POLICY_BUCKET
        if attribute.HasField("numeric") and not attribute.numeric.bins:
            edges = attribute.numeric.edges
            attribute.numeric.bins = len(edges) + 1 if edges else parameters.BINS.default
    decode_specification(full)
    check_presentation(full)
    check_guidance(full)
    return full


def new_specification(message: model_pb2.Specification, max_values: int) -> model_pb2.Specification:
    """Return the specification of a new model: complete, with canonical names of values and classes.

    Parameters
    ----------
    message, max_values : see `complete_specification`.

    Raises
    ------
    InvalidInput
        See `complete_specification`; also if two names of values or classes are spellings of one.
    """
    named = model_pb2.Specification()
    named.CopyFrom(message)
    _make_canonical(named.classes, "classes")
    for k, attribute in enumerate(named.attributes):
        if attribute.HasField("nominal"):
            _make_canonical(attribute.nominal.values, f"attributes[{k}].nominal.values")
    return complete_specification(named, max_values)


def _make_canonical(names: MutableSequence[str], field: str) -> None:
    try:
        names[:] = canonical_names(names)
    except ValueError as error:
        raise InvalidInput(f"specification.{field}", f"has two names of one value: {error}") from None


def check_sizes(message: model_pb2.Specification, sizes: MessageLimits) -> None:
    """Check a new model against the limits of this server.

    Raises
    ------
    InvalidInput
        If it exceeds a limit; the error names the field below ``specification``, the value and the limit.
    """
    _at_most(len(message.classes), sizes, "max_classes", "classes")
    _at_most(len(message.attributes), sizes, "max_attributes", "attributes")
    for k, name in enumerate(message.classes):
        _check_name(name, sizes, f"classes[{k}]")
    for k, attribute in enumerate(message.attributes):
        field, values = f"attributes[{k}]", attribute.nominal.values
        _check_name(attribute.name, sizes, f"{field}.name")
        most = attribute.nominal.max_values
        if most > sizes.max_values:
            raise InvalidInput(
                f"specification.{field}.nominal.max_values",
                f"is {most}, at most {sizes.max_values} are allowed (max_values)",
            )
        for i, value in enumerate(values):
            _check_name(value, sizes, f"{field}.nominal.values[{i}]")
    learner = decode_learner(message.learner)
    cost = learner.learning_cost(len(message.classes))
    total = sum(cost.values())
    if total > sizes.max_learning_cost:
        costly = max(cost, key=cost.__getitem__)
        *above, name = costly.split(".")
        given = reduce(getattr, above, learner)
        field = f".{costly}" if hasattr(given, name) else ""
        parts = " and ".join(
            f"{count:,} for its {each.rpartition('.')[2]}" for each, count in cost.items() if count
        )
        raise InvalidInput(
            f"specification.learner{field}",
            f"makes the learner grow {total:,} trees to learn once ({parts}), at most "
            f"{sizes.max_learning_cost:,} are allowed (max_learning_cost)",
        )


def _check_name(name: str, sizes: MessageLimits, field: str) -> None:
    _at_most(len(name), sizes, "max_name_characters", field)
    check_controls(name, f"specification.{field}")


def _at_most(count: int, sizes: MessageLimits, bound: str, field: str) -> None:
    most, what = getattr(sizes, bound), "characters" if bound == "max_name_characters" else "entries"
    if count > most:
        raise InvalidInput(
            f"specification.{field}", f"has {count} {what}, at most {most} are allowed ({bound})"
        )


def stored_specification(data: bytes) -> model_pb2.Specification:
    """Read a stored specification, which is complete.

    Earlier versions stored learners and strategies without the defaults of their parameters, which then get today's.
    Before strategies had parameters, field 8 was the name of the strategy and field 16 its package. For field 14, see
    `retired_setting`.
    """
    message = model_pb2.Specification()
    message.CopyFrom(_read_specification(data))
    return message


@lru_cache(maxsize=64)  # read for each call, but seldom changed
def _read_specification(data: bytes) -> model_pb2.Specification:
    message = model_pb2.Specification.FromString(data)
    if not message.HasField("strategy"):
        for earlier in cast("Iterable[Any]", UnknownFieldSet(message)):
            if earlier.field_number == 8:
                message.strategy.name = earlier.data.decode()
            elif earlier.field_number == 16:
                message.strategy.package = earlier.data.decode()
    message.DiscardUnknownFields()
    with suppress(InvalidInput):  # a package is not installed, or no longer knows its own parameters
        learner = plugin_class(SpecifiedLearner, message.learner.name, message.learner.package)
        strategy = strategy_class(message.strategy.name, learner.asks, message.strategy.package)
        for kind, stored in ((learner, message.learner), (strategy, message.strategy)):
            package = stored.package
            stored.CopyFrom(canonical_plugin(kind, stored))
            stored.package = package
    return message


def retired_setting(data: bytes) -> str:
    """Return a setting of a stored specification that no model has any more, and what the model does; mostly empty.

    Field 14 said when queries stop: with the budget, as they do today, or when no split is contested any more.
    """
    found = cast("Iterable[Any]", UnknownFieldSet(model_pb2.Specification.FromString(data)))
    if any((each.field_number, each.data) == (14, b"while-contested") for each in found):
        return "ask was while-contested, which is not offered any more; it now asks up to its budget"
    return ""


def decode_specification(message: model_pb2.Specification) -> Specification:
    """Convert a complete specification to the domain.

    Raises
    ------
    InvalidInput
        If it is invalid; the error names the field below ``specification``, the value and the bound.
    """
    attributes = []
    for k, attribute in enumerate(message.attributes):
        with field_prefix(f"specification.attributes[{k}]"):
            attributes.append(_decode_attribute(attribute))
    with field_prefix("specification.learner"):
        learner = decode_learner(message.learner)
    given = {name: getattr(message, name) for name in _PARAMETERS if message.HasField(name)}  # type: ignore[arg-type]
    with field_prefix("specification.strategy"):
        strategy = stored_strategy(message.strategy, learner.asks)
    with field_prefix("specification"):
        pruning = None
        if message.HasField("pruning"):
            with field_prefix("pruning"):
                kind: Any = _PRUNING.get(message.pruning.kind)
                if kind is None:
                    raise InvalidInput("kind", f"is {message.pruning.kind}, which is not a kind of pruning")
                pruning = Pruning(kind, message.pruning.level)
        return Specification(
            attributes=tuple(attributes),
            frame=Frame(tuple(message.classes)),
            learner=learner,
            strategy=strategy,
            pruning=pruning,
            **given,
        )


def _decode_attribute(message: model_pb2.Attribute) -> Attribute:
    missing: Any = _MISSING.get(message.missing)
    if missing is None:
        raise InvalidInput("missing", f"is {message.missing}, which is not a policy for missing values")
    match message.WhichOneof("kind"):
        case "nominal":
            overflow: Any = _OVERFLOW.get(message.nominal.overflow)
            if overflow is None:
                raise InvalidInput(
                    "nominal.overflow",
                    f"is {message.nominal.overflow}, which is not a policy for further values",
                )
            most = None if message.nominal.max_values == MAX_VALUES else message.nominal.max_values
            try:
                return Nominal(message.name, message.nominal.values, missing, most, overflow)
            except InvalidInput as error:
                if error.field == "max_values":
                    raise InvalidInput(f"nominal.{error.field}", error.reason) from error
                raise
        case "numeric":
            numeric = message.numeric
            if numeric.edges and numeric.bins != len(numeric.edges) + 1:
                made = f"{len(numeric.edges)} edges give {len(numeric.edges) + 1} bins"
                raise InvalidInput("numeric.bins", f"is {numeric.bins}, but {made}")
            try:
                return Numeric(message.name, numeric.bins, numeric.edges, missing, numeric.cuts or None)
            except InvalidInput as error:
                if error.field.startswith(("bins", "edges", "cuts")):
                    raise InvalidInput(f"numeric.{error.field}", error.reason) from error
                raise
        case _:
            raise InvalidInput("kind", f"of {shown(message.name)} is missing: say nominal or numeric")


def specification_of(data: bytes, like: Specification | None = None) -> Specification:
    """Return a stored specification, with the attributes and classes of `like`, a later one of the same model."""
    found = decode_specification(stored_specification(data))
    return found if like is None else replace(found, attributes=like.attributes, frame=like.frame)


def attribute_count(data: bytes) -> int:
    """Return the number of attributes of a stored specification."""
    return len(model_pb2.Specification.FromString(data).attributes)


def first_specification(record: ModelRecord) -> tuple[Specification, int]:
    """Return the specification before the first event, in the present shape, and its number of attributes."""
    present = specification_of(record.specification) if record.shapes.extensions else None
    return specification_of(record.initial_specification, like=present), attribute_count(
        record.initial_specification
    )


def extended_specification(
    current: model_pb2.Specification, request: model_pb2.ExtendModelRequest, max_values: int = MAX_VALUES
) -> model_pb2.Specification:
    """Return the specification with the classes and attributes of a request added.

    Raises
    ------
    InvalidInput
        If there are none, a name is taken or repeated, or an attribute's values may not be missing; see also
        `complete_specification`.
    """
    if not request.classes and not request.attributes:
        raise InvalidInput(
            "classes", "are none, and there are no attributes: give at least one class or attribute"
        )
    extended = model_pb2.Specification()
    extended.CopyFrom(current)
    named = model_pb2.ExtendModelRequest(classes=request.classes, attributes=request.attributes)
    known = list(current.classes)
    for i, name in enumerate(named.classes):
        try:
            *others, canonical = canonical_names([*known, name])
        except ValueError:  # two spellings of one name
            raise _known_name(f"classes[{i}]", name, "class") from None
        if others != known:
            raise InvalidInput(
                f"classes[{i}]", f"is {shown(name)}, which respells a class that the model has"
            )
        if canonical in known:
            raise _known_name(f"classes[{i}]", name, "class")
        known.append(canonical)
    extended.classes[:] = known
    names = [each.name for each in current.attributes]
    for i, attribute in enumerate(named.attributes):
        if attribute.name in names:
            raise _known_name(f"attributes[{i}].name", attribute.name, "attribute")
        names.append(attribute.name)
        if attribute.missing == model_pb2.MISSING_POLICY_REJECT:
            raise InvalidInput(
                f"attributes[{i}].missing", "is reject, but the rows that the model has lack this attribute"
            )
        if attribute.HasField("nominal"):
            with _of_request(len(current.attributes)):
                _make_canonical(
                    attribute.nominal.values, f"attributes[{len(current.attributes) + i}].nominal.values"
                )
        extended.attributes.append(attribute)
    with _of_request(len(current.attributes)):
        return complete_specification(extended, max_values)


def extension_of(stored: bytes, request: model_pb2.ExtendModelRequest, sizes: MessageLimits) -> Extension:
    """Return the extension of a stored specification by a request, checked against the limits of this server."""
    current = stored_specification(stored)
    extended = extended_specification(current, request, sizes.max_values)
    with _of_request(len(current.attributes)):
        check_sizes(extended, sizes)
    before, now = ((len(each.attributes), len(each.classes)) for each in (current, extended))
    return Extension(extended.SerializeToString(deterministic=True), before, now)


def is_extension(
    stored: bytes, before: Shape, request: model_pb2.ExtendModelRequest, sizes: MessageLimits
) -> bool:
    """Return whether a stored specification is an earlier one, of the shape `before`, extended by this request."""
    extended = stored_specification(stored)
    former = model_pb2.Specification()
    former.CopyFrom(extended)
    del former.attributes[before.attributes :]
    del former.classes[before.classes :]
    try:
        return extended_specification(former, request, sizes.max_values) == extended
    except InvalidInput:
        return False


def _known_name(field: str, name: str, what: str) -> InvalidInput:
    return InvalidInput(
        field, f"is {shown(name)}, which is the name of another {what} of the model, or comes twice"
    )


@contextmanager
def _of_request(known: int) -> Iterator[None]:
    """Let errors name attributes by their position in the request, for a model that has `known` attributes already."""
    try:
        yield
    except InvalidInput as error:
        place = re.fullmatch(r"specification\.attributes\[(\d+)\](.*)", error.field)
        if place is None or int(place[1]) < known:
            field = error.field.removeprefix("specification.") if "classes" in error.field else error.field
            raise InvalidInput(field, error.reason) from error
        raise InvalidInput(f"attributes[{int(place[1]) - known}]{place[2]}", error.reason) from error


def updated_specification(
    current: model_pb2.Specification, request: model_pb2.UpdateModelRequest
) -> model_pb2.Specification:
    """Return the specification with the fields of the mask taken from the request.

    A field in the mask that the request leaves out gets its default.

    Raises
    ------
    InvalidInput
        For an empty mask, an unknown or fixed field, or an invalid value.
    """
    paths = list(request.update_mask.paths)
    if not paths:
        raise InvalidInput("update_mask", f"is empty, must name fields of {', '.join(CHANGEABLE)}")
    merged = model_pb2.Specification()
    merged.CopyFrom(current)
    for i, path in enumerate(paths):
        if path not in CHANGEABLE:
            raise InvalidInput(
                f"update_mask.paths[{i}]", f"is {shown(path)}, must be one of {', '.join(CHANGEABLE)}"
            )
        merged.ClearField(path)  # type: ignore[arg-type]
        if not request.specification.HasField(path):  # type: ignore[arg-type]
            continue
        if path in _PARAMETERS:
            setattr(merged, path, getattr(request.specification, path))
        else:
            getattr(merged, path).CopyFrom(getattr(request.specification, path))
    return complete_specification(merged)


def encode_model(record: ModelRecord, vocabulary: Mapping[int, Sequence[str]]) -> model_pb2.Model:
    """Convert a stored model to the wire; learned nominal values follow the declared ones."""
    specification = stored_specification(record.specification)
    for k, values in vocabulary.items():
        if k >= len(specification.attributes) or not specification.attributes[k].HasField("nominal"):
            continue  # the vocabulary is of another model, which just took the name
        specification.attributes[k].nominal.values.extend(values)
    report = model_pb2.GrowthReport.FromString(record.report)
    return model_pb2.Model(
        name=model_name(record.name),
        specification=specification,
        create_time=to_timestamp(record.created_at),
        sequence_committed=record.sequence_committed,
        sequence_grown=record.sequence_grown,
        tree_version=record.tree_version,
        instance_count=record.instance_count,
        queries_answered=record.queries_answered,
        queries_leased=record.queries_leased,
        queries_refused=record.queries_refused,
        queries_open=record.queries_open,
        conflicts=record.conflicts,
        lag=to_duration(record.lag_s),
        uid=record.uid,
        accuracy=report.accuracy if report.accuracy.blocks else None,
        average_confidence=report.average_confidence if report.HasField("average_confidence") else None,
        other_names=report.other_names,
        growth_stopped=stop_text(report.stopped_above_bytes),
        asking_stopped=_absence_text(specification.strategy) if is_absent(specification.strategy) else "",
        drift=report.drift if report.HasField("drift") else None,
        extensions=[
            model_pb2.Extension(
                sequence=now.since,
                classes=specification.classes[before.classes : now.classes],
                attributes=[
                    each.name for each in specification.attributes[before.attributes : now.attributes]
                ],
            )
            for before, now in pairwise(record.shapes.steps)
        ],
    )


def _absence_text(strategy: model_pb2.Plugin) -> str:
    """Return why a model whose strategy is not installed asks nothing, and how to mend that."""
    package = missing_package("strategy", strategy.package)
    return f"its strategy {strategy.name} is {package} Or give the model another strategy."


@lru_cache(maxsize=4096)
def _check_parts(specification: bytes, report: bytes) -> None:
    specification_of(specification)
    model_pb2.GrowthReport.FromString(report)


def check_head(record: ModelRecord) -> None:
    """Raise an error of reading if the specification or report of a stored model is damaged."""
    _check_parts(record.specification, record.report)


def to_duration(seconds: float) -> Duration:
    """Convert seconds to a duration on the wire."""
    length = Duration()
    length.FromMicroseconds(round(seconds * 1e6))
    return length


def to_timestamp(seconds: float) -> Timestamp:
    """Convert seconds since 1970 to a time on the wire."""
    stamp = Timestamp()
    stamp.FromMicroseconds(round(seconds * 1e6))
    return stamp


def earliest_seconds(stamp: Timestamp) -> float:
    """Return the earliest time, in seconds since 1970, that `to_timestamp` converts to `stamp` or later.

    Times on the wire are rounded; this makes a request from such a time include what happened at that time.
    """
    microseconds = -(-stamp.ToNanoseconds() // 1000)
    seconds = (microseconds - 0.5) / 1e6
    while round(seconds * 1e6) >= microseconds:
        seconds = math.nextafter(seconds, -math.inf)
    while round(seconds * 1e6) < microseconds:
        seconds = math.nextafter(seconds, math.inf)
    return seconds
