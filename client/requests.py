"""The requests of both clients for queries and models, and how long they wait for a query."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from quercus.belief.errors import shown
from quercus.client.errors import DeadlineExceeded, InvalidArgument, invalid
from quercus.client.messages import enum_value, filled
from quercus.client.resources import model_resource
from quercus.client.results import Lease, Model
from quercus.client.specification_messages import message_of_changes, message_of_specification
from quercus.client.specifications import Specification
from quercus.specification.algorithms import Pruning
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import CHANGEABLE
from quercus.specification.presentation import Presentation
from quercus.v1 import model_pb2, query_pb2

Change = float | str | Mapping[str, Any] | Pruning | Presentation | None
LONGEST_POLL_S = 10.0
"""Seconds of one long poll; long waits are several polls, so that a lost server is noticed."""
LONGEST_GROWTH_S = 600.0
"""Seconds after which growth on this client's writes counts as broken."""
LONGEST_S = 315_576_000_000
"""Seconds that a protobuf duration holds."""
_MAY_BE_NONE = ("max_depth", "pruning", "presentation")


def specification_message(given: Specification) -> model_pb2.Specification:
    """Return the message of a specification for CreateModel.

    Values that cannot be encoded are refused here, all others by the server.
    """
    for k, name in enumerate(given.classes):
        if not isinstance(name, str):
            raise invalid(f"classes[{k}]", f"is {shown(name)} ({type(name).__name__}), must be text")
    for k, attribute in enumerate(given.attributes):
        if not isinstance(attribute, Nominal | Numeric):
            kind = type(attribute).__name__
            raise invalid(f"attributes[{k}]", f"expected Nominal or Numeric, got {shown(attribute)} ({kind})")
    try:
        return message_of_specification(given)
    except InvalidArgument:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise invalid("specification", str(error)) from None


def to_duration(seconds: float, field: str) -> Duration:
    """Return seconds as a protobuf duration; ``field`` is the name for errors."""
    if isinstance(seconds, float) and not math.isfinite(seconds):
        raise invalid(field, f"is {seconds}, must be a finite number of seconds")
    if abs(seconds) > LONGEST_S:
        raise invalid(field, f"must be at most {LONGEST_S:,} seconds")
    message = Duration()
    message.FromNanoseconds(round(seconds * 1e9))
    return message


def update_request(model: str, changes: Mapping[str, Change]) -> model_pb2.UpdateModelRequest:
    """Return the request of UpdateModel: the named fields and nothing else."""
    for name in changes:
        if name not in CHANGEABLE:
            raise invalid(name, f"cannot be changed; only {', '.join(CHANGEABLE)} can")
        if changes[name] is None and name not in _MAY_BE_NONE:
            raise invalid(name, f"is None, must have a value (only {', '.join(_MAY_BE_NONE)} may be none)")
    return filled(
        model_pb2.UpdateModelRequest,
        name=model_resource(model),
        specification=message_of_changes(changes),
        update_mask=FieldMask(paths=list(changes)),
    )


def state_numbers(names: Iterable[str]) -> list[query_pb2.QueryState.ValueType]:
    """Query states by name."""
    return [enum_value(query_pb2.QueryState.DESCRIPTOR, "states", name) for name in names]


def is_spent(model: Model) -> bool:
    """Return whether no query can be leased again; before, leased queries may still be given back."""
    return model.queries_answered >= model.budget


class WaitPolicy:
    """The rule that ends a loop of queries when none come.

    Parameters
    ----------
    idle_s
        Seconds without a query after which to end; ``None``: no limit. The time in which the tree still learns from
        this client's writes does not count.
    """

    def __init__(self, idle_s: float | None) -> None:
        self._idle_s = idle_s
        self._has_called = self._growing = False
        self.restart_wait()

    def restart_wait(self) -> None:
        """Restart the wait after a query came."""
        self._since = self._growing_since = time.monotonic()

    @property
    def wait_s(self) -> float:
        """Seconds for which the next call may wait; 0 for the first, since the budget may be spent already."""
        if not self._has_called:
            return 0.0
        if self._idle_s is None:
            return LONGEST_POLL_S
        left = self._since + self._idle_s - time.monotonic()
        return min(LONGEST_POLL_S, max(1.0 if self._growing else 0.0, left))

    def is_over(self, lease: Lease, model: Model | None) -> bool:
        """Return whether no more queries will come; ``model`` is needed only if the budget is spent."""
        self._has_called = True
        self._growing = lease.idle == "growing"
        if self._growing:
            self._since = time.monotonic()
            if self._since - self._growing_since > LONGEST_GROWTH_S:
                raise DeadlineExceeded(
                    f"the tree did not catch up with this client within {LONGEST_GROWTH_S:g} s"
                )
            return False
        self._growing_since = time.monotonic()
        if lease.idle == "share_spent":  # nothing is held here, so nothing comes back
            return True
        if model is not None and is_spent(model):
            return True
        return self._idle_s is not None and time.monotonic() - self._since >= self._idle_s
