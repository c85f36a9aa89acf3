"""Limits of messages, calls and growth. Errors name the limit that they enforce.

The defaults of limits that can be configured are in `quercus.specification.server`; limits that other parts share are
in `quercus.specification.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quercus.specification import server
from quercus.specification.parameter import with_parameter_docs

MEMORY_SHARE: Final = 0.75
"""Share of the machine's memory that the server uses before it refuses work, unless configured."""

MODEL_MEMORY_SHARE: Final = 0.25
"""Greatest share of the machine's memory for growing one model, unless configured."""

MAX_PAGE: Final = 1000
"""Most entries of one page of a listing."""

DEFAULT_PAGE: Final = 100

MAX_FILTER: Final = 1000
"""Most entries of each part of a filter."""

ANSWER_PAGE: Final = 500
"""Events that a stream of answers reads together."""

MIN_LEASE_S: Final = 1.0
MAX_LEASE_S: Final = 3600.0
DEFAULT_LEASE_S: Final = 60.0

MIN_DELAY_S: Final = 1.0
DEFAULT_DELAY_S: Final = 600.0
"""Seconds for which a query is postponed by default; the bounds are `MIN_DELAY_S` and `MAX_DELAY_S`."""

MIN_PAUSE_S: Final = 0.005
"""Least time, in seconds, between two attempts to lease a query when a lease ends or a postponed query comes back."""

MAX_WAIT_S: Final = 60.0
"""Longest wait of LeaseQueries, in seconds."""

GROUP_ROWS: Final = 20_000
"""Most rows that the writer puts into one commit."""

AGENDA_LENGTH: Final = 100
"""Most queries that growth publishes."""

GROWTH_ROWS: Final = 20_000
"""Events that the grower reads and folds before the next model's turn, in some tenths of a second."""

GROWTH_BYTES: Final = 16 * 1024 * 1024
"""Bytes of values and labels after which the grower stops reading, so that any backlog needs limited memory."""

UNREAD_SHARE: Final = 20
"""Until their tree is due, the grower leaves up to `GROWTH_ROWS` / `UNREAD_SHARE` rows unread.

Reading and folding these 1,000 rows takes a millisecond or two.
"""

PUBLISH_SHARE: Final = 4
"""While events remain to be folded, the next tree waits for this multiple of the time of the last publication.

Publishing includes updating the tree by the evidence, which may take longer than `snapshot_interval_s`. So four fifths
of the time go into folding, whatever the tree costs.
"""

AGENDA_SAVED_S: Final = 5.0
"""Most seconds of agenda time that are saved up, so that an occasional labeller gets queries of the newest tree."""

LARGE_LAG_S: Final = 10.0
"""Seconds of lag behind the log from which on a tree gets a line in the server's log."""

LAG_NOTICE_S: Final = 60.0
"""Seconds after which a tree that still lags gets another line."""

MAX_ERROR_BYTES: Final = 800
"""Most bytes of an error message, because trailing metadata above 8 KiB would break the call itself.

The message is sent percent-encoded (three bytes for one), and up to four more times in the details (four bytes for
three).
"""

REFUSALS_BYTES: Final = 1024 * 1024
"""Most bytes of the reasons, and of the fields, of all refused rows of a batch."""

NEW_VALUE_ATTEMPTS: Final = 20
"""Most attempts to push new nominal values, while others add values."""

PENDING_BYTES: Final = 128 * 1024 * 1024
"""Bytes of batches that wait for the writer, above which streams are not read."""

QUIET_S: Final = 1.0
"""Seconds without a change after which the server polls for changes more rarely."""

REST_POLL_S: Final = 0.05
"""Seconds between two polls then, unless `poll_ms` is longer. The server's own writes end the rest."""

MAX_REMEMBERED_CHANGES: Final = 20_000
"""Most models whose last change the server remembers; beyond this number, all waiting calls are woken once."""

MAX_CACHED_MODELS: Final = 1000
"""Most models whose schema and tree the server keeps in memory."""

MAX_WATCHED_TREES: Final = 16
"""Most decoded trees that the server keeps for those who watch them."""

MAX_ENTRIES: Final = int(server.MAX_BATCH_ROWS.highest)
"""Most entries of any list in a received message: rows are the longest."""

UNCOUNTED_BYTES: Final = 256 * 1024
"""Bytes from which on the parts of a message are counted before it is read; a smaller one takes at most about 5 MB."""

MAX_PARTS: Final = 1_000_000
"""Most fields, at all depths, and entries of lists of a received message: 10,000 rows of 24 values by name."""

FEW_NUMBERS: Final = 64
"""Most numbers of a message that are checked one by one, because calling numpy would take longer."""

INLINE_BYTES: Final = 16 * 1024
"""Messages up to this size are converted on the event loop; larger ones in a thread."""

INLINE_JSON_BYTES: Final = 2 * 1024
"""The same for messages as JSON, whose conversion takes about ten times as long per byte."""


@with_parameter_docs
@dataclass(frozen=True)
class MessageLimits:
    """The configured limits of the contents of a message."""

    max_batch_rows: int = server.MAX_BATCH_ROWS.dataclass_field()
    max_attributes: int = server.MAX_MODEL_ATTRIBUTES.dataclass_field()
    max_values: int = server.MAX_ATTRIBUTE_VALUES.dataclass_field()
    max_classes: int = server.MAX_MODEL_CLASSES.dataclass_field()
    max_name_characters: int = server.MAX_NAME_CHARACTERS.dataclass_field()
    max_learning_cost: int = server.MAX_LEARNING_COST.dataclass_field()
