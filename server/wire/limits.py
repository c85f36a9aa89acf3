"""Bounds of messages and calls, with their names; errors name the bound that they enforce.

The defaults of bounds that can be configured are in `quercus.specification.server`; bounds that other parts hold to as
well are in `quercus.specification.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quercus.specification import server
from quercus.specification.parameter import with_parameter_docs

MEMORY_SHARE: Final = 0.75
"""Share of the machine's memory that the server uses before it refuses work, unless configured."""

MODEL_MEMORY_SHARE: Final = 0.25
"""Share of the machine's memory that growing one model takes at most, unless configured."""

MAX_PAGE: Final = 1000
"""Entries of one page of a listing."""

DEFAULT_PAGE: Final = 100

MAX_FILTER: Final = 1000
"""Entries of each part of a filter."""

ANSWER_PAGE: Final = 500
"""Events that a stream of answers reads at once."""

MIN_LEASE_S: Final = 1.0
MAX_LEASE_S: Final = 3600.0
DEFAULT_LEASE_S: Final = 60.0

MIN_DELAY_S: Final = 1.0
DEFAULT_DELAY_S: Final = 600.0
"""Seconds for which a query is postponed by default; `MIN_DELAY_S` and `MAX_DELAY_S` bound them."""

MIN_PAUSE_S: Final = 0.005
"""Least time, in seconds, between two searches for a query whose time has come."""

MAX_WAIT_S: Final = 60.0
"""Longest long poll of LeaseQueries."""

GROUP_ROWS: Final = 20_000
"""Rows that the writer puts into one commit at most."""

AGENDA_LENGTH: Final = 100
"""Queries that growth publishes at most."""

GROWTH_ROWS: Final = 20_000
"""Events that the grower reads and folds at once, before it looks at the next model: some tenths of a second."""

GROWTH_BYTES: Final = 16 * 1024 * 1024
"""Bytes of values and labels after which the grower reads no further: memory is bounded with any backlog."""

UNREAD_SHARE: Final = 20
"""The grower leaves up to one in this many of the rows that it reads at once unread until their tree is due.

They are 1,000, a millisecond or two to read and fold.
"""

PUBLISH_SHARE: Final = 4
"""While events remain to be folded, the next tree waits this many times as long as the last publication took.

Publishing makes the tree follow the evidence, which may take longer than `snapshot_interval_s`: so four fifths of the
time go into folding, whatever the tree costs.
"""

AGENDA_SAVED_S: Final = 5.0
"""Longest agenda time that is saved up, so that an occasional labeller always gets queries of the newest tree."""

LARGE_LAG_S: Final = 10.0
"""A tree that lags this far behind the log gets a line in the log file."""

LAG_NOTICE_S: Final = 60.0
"""A tree that still lags gets another line after this time."""

MAX_ERROR_BYTES: Final = 800
"""Length of an error message: trailing metadata above 8 KiB would break the call itself.

The message travels percent-encoded (three bytes for one), and up to four times more in the details (four
bytes for three).
"""

REFUSALS_BYTES: Final = 1024 * 1024
"""Length of the reasons, and of the fields, of all rows of a batch that are refused."""

NEW_VALUE_ATTEMPTS: Final = 20
"""Times a push with new nominal values is tried again when others added values meanwhile."""

PENDING_BYTES: Final = 128 * 1024 * 1024
"""Batches that wait for the writer, together; streams are read no further while they exceed it."""

QUIET_S: Final = 1.0
"""Seconds without a change after which the server looks for changes more rarely."""

REST_POLL_S: Final = 0.05
"""Seconds between two looks for changes then, unless `poll_ms` is longer. What the server itself does ends the rest."""

MAX_REMEMBERED_CHANGES: Final = 20_000
"""Models whose last change the server remembers; beyond this number, all waiting calls are woken once."""

MAX_CACHED_MODELS: Final = 1000
"""Models whose schema and tree the server keeps in memory."""

MAX_WATCHED_TREES: Final = 16
"""Newest trees, decoded, that the server keeps for those who watch them."""

MAX_ENTRIES: Final = int(server.MAX_BATCH_ROWS.highest)
"""Most entries of any list in a received message: rows are the longest."""

UNCOUNTED_BYTES: Final = 256 * 1024
"""Size in bytes from which the parts of a message are counted before it is read: a smaller one takes about 5 MB."""

MAX_PARTS: Final = 1_000_000
"""Most fields of a received message, at all depths, and entries of its lists: 10,000 rows of 24 values by name."""

FEW_NUMBERS: Final = 64
"""Most numbers of a message that are checked one by one: calling numpy takes longer."""

INLINE_BYTES: Final = 16 * 1024
"""Messages up to this size are converted on the event loop; a larger one in a thread."""

INLINE_JSON_BYTES: Final = 2 * 1024
"""The same for messages as JSON, whose conversion takes some ten times as long a byte."""


@with_parameter_docs
@dataclass(frozen=True)
class MessageLimits:
    """The configured bounds of the contents of a message."""

    max_batch_rows: int = server.MAX_BATCH_ROWS.dataclass_field()
    max_attributes: int = server.MAX_MODEL_ATTRIBUTES.dataclass_field()
    max_values: int = server.MAX_ATTRIBUTE_VALUES.dataclass_field()
    max_classes: int = server.MAX_MODEL_CLASSES.dataclass_field()
    max_name_characters: int = server.MAX_NAME_CHARACTERS.dataclass_field()
    max_learning_cost: int = server.MAX_LEARNING_COST.dataclass_field()
