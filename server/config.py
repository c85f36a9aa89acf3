"""Configuration: flags, then ``QUERCUS_*`` of the environment, then a TOML file, then defaults.

Each field of :class:`Config` is a key: ``--store``, ``QUERCUS_STORE``, and ``store = "..."`` in the table
``[server]`` of the file. An error names the key and where its value came from.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Final

from quercus.belief.errors import shown
from quercus.server import logs
from quercus.server.errors import BadStart
from quercus.server.limits import (
    AGENDA_SHARE,
    CHECK_S,
    LEARNING_COST,
    MAX_BATCH_ROWS,
    MAX_CALLS,
    MAX_LEARNING_COST,
    MAX_LEASES,
    MAX_MESSAGE_BYTES,
    MAX_MODELS,
    MAX_PUSH_WINDOW,
    MAX_SNAPSHOT_INTERVAL_S,
    MAX_STREAMS,
    PUSH_WINDOW,
    SNAPSHOT_INTERVAL_S,
    Sizes,
)
from quercus.server.listening import is_loopback
from quercus.specification.parameters import MAX_ATTRIBUTES, MAX_CLASSES, MAX_NAME_CHARS, MAX_VALUES
from quercus.storage import KEPT_VERSIONS, file_url

PREFIX: Final = "QUERCUS_"
ACCESS: Final = ("auto", "open", "tokens")


class BadConfiguration(BadStart):
    """A key that does not exist or a value that cannot be used; the text names both and the source."""


@dataclass(frozen=True)
class Config:
    """What a server needs to know to start.

    Attributes
    ----------
    store : URL of the store, or the path of a SQLite file.
    host, port : where to listen; port 0 lets the system choose.
    access : open: whoever reaches the port may call; tokens: every call needs a bearer token (``quercus tokens``);
        auto: open on a loopback address, tokens on any other.
    tls_cert, tls_key : PEM files of the certificate and its private key; empty: no TLS.
    tls_client_ca : PEM file of authorities; clients must show a certificate of one of them. Empty: they need none.
    plaintext : listen without TLS although others can reach the address, because something before it encrypts.
    log_level : debug, info, warning or error.
    log_format : human, or json: one object a line.
    metrics_host, metrics_port : where ``GET /metrics`` is answered, for Prometheus; port 0: nowhere.
    grace_s : longest time a graceful stop waits for calls under way, in seconds.
    poll_ms : time between two looks for changes of the store, in milliseconds.
    read_threads : threads that read the store.
    max_message_bytes : largest message received.
    max_calls : calls under way at once, of all clients, streams included.
    max_streams : streams that one caller may have open: one token, or one address where no token is asked for.
    max_leases : queries that one stream, or one call, may hold at once.
    push_window : batches of one push stream that are read but not yet acknowledged.
    calls_per_s : calls of one caller in a second, and messages in its streams; 0: no bound.
    max_models : models of the store.
    max_attributes, max_values, max_classes : of a new model; values also of those that rows bring.
    max_name_characters : of the name of a class, an attribute or a nominal value.
    max_learning_cost : trees that the learner of a new model may grow to learn once.
    max_batch_rows : rows in one push or one classification.
    max_memory_bytes : above which the server refuses new work (RESOURCE_EXHAUSTED); 0: three quarters of what the
        machine, or its control group, has.
    check_s : for how long at most to look at the start whether the store is damaged, in seconds; 0: not at all.
    grower : whether to run the grower process. Of servers that share a store one may.
    keep_trees : tree versions of each model that are kept; the log is kept whole.
    snapshot_interval_s : while rows arrive the tree of a model is published at most this often, in seconds; 0: as often
        as there is something new. What labellers say, and what comes after a rest, is published at once.
    agenda_share : of the time of one core, spent on choosing the queries of a model. Where answers come faster, the
        queries chosen before are asked on meanwhile.
    """

    store: str = "quercus.db"
    host: str = "127.0.0.1"
    port: int = 50051
    access: str = "auto"
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    plaintext: bool = False
    log_level: str = "info"
    log_format: str = "human"
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0
    grace_s: float = 10.0
    poll_ms: int = 5
    read_threads: int = 4
    max_message_bytes: int = MAX_MESSAGE_BYTES
    max_calls: int = MAX_CALLS
    max_streams: int = MAX_STREAMS
    max_leases: int = MAX_LEASES
    push_window: int = PUSH_WINDOW
    calls_per_s: float = 0.0
    max_models: int = MAX_MODELS
    max_attributes: int = MAX_ATTRIBUTES
    max_values: int = MAX_VALUES
    max_classes: int = MAX_CLASSES
    max_name_characters: int = MAX_NAME_CHARS
    max_learning_cost: int = LEARNING_COST
    max_batch_rows: int = MAX_BATCH_ROWS
    max_memory_bytes: int = 0
    check_s: float = CHECK_S
    grower: bool = True
    keep_trees: int = KEPT_VERSIONS
    snapshot_interval_s: float = SNAPSHOT_INTERVAL_S
    agenda_share: float = AGENDA_SHARE

    def __post_init__(self) -> None:
        for key, low, high in _BOUNDS:
            value = getattr(self, key)
            if not low <= value <= high:
                raise BadConfiguration(f"{key}: is {value}, must lie in [{low}, {high}]")
        for key, allowed in (("log_level", logs.LEVELS), ("log_format", logs.FORMATS), ("access", ACCESS)):
            if getattr(self, key) not in allowed:
                raise BadConfiguration(
                    f"{key}: is {shown(getattr(self, key))}, must be one of {', '.join(allowed)}"
                )
        for key in ("store", "host", "metrics_host"):
            if not getattr(self, key).strip():
                raise BadConfiguration(f"{key}: must not be empty")
        self._check_security()

    def _check_security(self) -> None:
        if bool(self.tls_cert) != bool(self.tls_key):
            missing = "tls_key" if self.tls_cert else "tls_cert"
            raise BadConfiguration(f"{missing}: is missing, a certificate and its private key go together")
        if self.tls_client_ca and not self.tls_cert:
            raise BadConfiguration("tls_client_ca: needs tls_cert and tls_key as well")
        if not (self.tls_cert or self.plaintext or is_loopback(self.host)):
            raise BadConfiguration(
                f"host: is {shown(self.host)}, which other machines can reach, and what they send would cross the "
                "network in the clear: give tls_cert and tls_key, or set plaintext if something before it encrypts"
            )

    @property
    def needs_tokens(self) -> bool:
        """Whether every call needs a bearer token."""
        return self.access == "tokens" or (self.access == "auto" and not is_loopback(self.host))

    @cached_property  # asked for with every message
    def sizes(self) -> Sizes:
        """Bounds of what a message may hold."""
        return Sizes(**{field.name: getattr(self, field.name) for field in fields(Sizes)})

    @property
    def store_url(self) -> str:
        """The store as a URL: a plain path becomes ``sqlite:///path``, with what a URL cannot hold quoted."""
        return self.store if "://" in self.store else file_url(Path(self.store))

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        file: str | Path | None = None,
    ) -> Config:
        """Merge the sources.

        Parameters
        ----------
        flags : values given on the command line; None means not given.
        environ : the environment, default ``os.environ``.
        file : TOML file; None: the one that ``QUERCUS_CONFIG`` names, if any.

        Raises
        ------
        BadConfiguration
            For an unknown key, a value of the wrong type or out of bounds, or a file that cannot be read.
        """
        environ = os.environ if environ is None else environ
        given: dict[str, tuple[object, str]] = {}
        if (path := file or environ.get(PREFIX + "CONFIG") or None) is not None:
            given |= {key: (value, f"[server] of {path}") for key, value in _read_file(Path(path)).items()}
        names = {field.name for field in fields(cls)}
        given |= {
            key: (environ[variable], f"environment variable {variable}")
            for key in names
            if (variable := PREFIX + key.upper()) in environ
        }
        given |= {
            key: (value, "flag --limit" if key in LIMITS else f"flag --{key.replace('_', '-')}")
            for key, value in (flags or {}).items()
            if value is not None
        }
        return _build(given)


LIMITS: Final = (
    "max_message_bytes",
    "max_batch_rows",
    "push_window",
    "max_calls",
    "max_streams",
    "max_leases",
    "calls_per_s",
    "max_models",
    "max_attributes",
    "max_values",
    "max_classes",
    "max_name_characters",
    "max_learning_cost",
    "max_memory_bytes",
    "check_s",
    "keep_trees",
    "agenda_share",
)
"""Keys that ``--limit`` sets; of those that have no flag of their own."""


def read_limits(given: Sequence[str]) -> dict[str, object]:
    """Read ``KEY=VALUE`` of ``--limit``.

    Raises
    ------
    BadConfiguration
        When one is not of that form or its key is no bound.
    """
    found: dict[str, object] = {}
    for text in given:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or key not in LIMITS:
            raise BadConfiguration(
                f"limit: is {shown(text)}, must be KEY=VALUE with a key of {', '.join(LIMITS)} (from flag --limit)"
            )
        found[key] = value.strip()
    return found


_BOUNDS: Final[tuple[tuple[str, float, float], ...]] = (
    ("port", 0, 65535),
    ("metrics_port", 0, 65535),
    ("grace_s", 0.0, 3600.0),
    ("poll_ms", 1, 10_000),
    ("read_threads", 1, 64),
    ("check_s", 0.0, 3600.0),
    ("keep_trees", 1, 1_000_000_000),
    ("snapshot_interval_s", 0.0, MAX_SNAPSHOT_INTERVAL_S),
    ("agenda_share", 0.01, 1.0),
    ("max_message_bytes", 1024, 1024**3),
    ("max_calls", 1, MAX_CALLS),
    ("max_streams", 1, MAX_CALLS),
    ("max_leases", 1, MAX_LEASES),
    ("push_window", 1, MAX_PUSH_WINDOW),
    ("calls_per_s", 0.0, 1e6),
    ("max_models", 1, MAX_MODELS),
    ("max_attributes", 1, MAX_ATTRIBUTES),
    ("max_values", 1, MAX_VALUES),
    ("max_classes", 2, MAX_CLASSES),
    ("max_name_characters", 1, MAX_NAME_CHARS),
    ("max_learning_cost", 1, MAX_LEARNING_COST),
    ("max_batch_rows", 1, MAX_BATCH_ROWS),
    ("max_memory_bytes", 0, 2**63),
)


def _build(given: Mapping[str, tuple[object, str]]) -> Config:
    types = {field.name: type(field.default) for field in fields(Config)}
    values: dict[str, object] = {}
    for key, (value, source) in given.items():
        if key not in types:
            raise BadConfiguration(
                f"{key}: is not a key of the server's configuration (from {source}); "
                f"the keys are {', '.join(sorted(types))}"
            )
        values[key] = _convert(key, value, types[key], source)
    sources = {key: source for key, (_, source) in given.items()}
    try:
        return Config(**values)  # type: ignore[arg-type]  # each was converted to its field's type
    except BadConfiguration as error:
        found = sources.get(str(error).partition(":")[0])
        if found is None:  # what is wrong is that it was not given
            raise
        raise BadConfiguration(f"{error} (from {found})") from None


def _convert(key: str, value: object, kind: type, source: str) -> object:
    try:
        if kind is bool:
            return _to_bool(value)
        if kind is str:
            if not isinstance(value, str):
                raise ValueError
            return value
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        if kind is int and isinstance(value, float):
            raise ValueError
        return kind(value)
    except ValueError:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
        raise BadConfiguration(f"{key}: is {shown(value)}, must be {words} (from {source})") from None


def _to_bool(value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = value if isinstance(value, bool) else words.get(str(value).lower())
    if found is None:
        raise ValueError
    return found


def _read_file(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as stream:
            table = tomllib.load(stream).get("server", {})
    except OSError as error:
        raise BadConfiguration(f"cannot read the configuration file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"the configuration file {path} is not TOML: {error}") from None
    if not isinstance(table, dict):
        raise BadConfiguration(f"server: must be a table (from {path})")
    return table
