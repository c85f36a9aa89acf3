"""The configuration of a server: from flags, ``QUERCUS_*`` variables, a TOML file, and defaults, in this order.

Each field of :class:`Config` is a key: ``--store``, ``QUERCUS_STORE``, and ``store = "..."`` in the table
``[server]`` of the file. Its default, bounds and description are in `quercus.specification.server`. Errors name the
key and the source of its value.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from quercus.belief.errors import InvalidInput, shown
from quercus.server.machine import SHARES_PORTS, usable_cores
from quercus.server.wire.errors import BadStart
from quercus.server.wire.limits import MessageLimits
from quercus.specification import server
from quercus.specification.environment import PREFIX, check_environment
from quercus.specification.hosts import is_loopback
from quercus.storage import file_url, is_url

(AUTO,) = server.WORKERS.choices
LIMITS: Final = tuple(each.name for each in server.LIMITS)
_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class BadConfiguration(BadStart):
    """A key does not exist, or its value is invalid; the message names key, value and source."""


class Config(BaseSettings):
    """The configuration of a server; see `quercus.specification.server`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    store: str = server.STORE.default
    host: str = server.HOST.default
    port: int = server.PORT.default
    workers: int = server.WORKERS.default
    access: str = server.ACCESS.default
    tls_cert: str = server.TLS_CERT.default
    tls_key: str = server.TLS_KEY.default
    tls_client_ca: str = server.TLS_CLIENT_CA.default
    plaintext: bool = server.PLAINTEXT.default
    log_level: str = server.LOG_LEVEL.default
    log_format: str = server.LOG_FORMAT.default
    http_host: str = server.HTTP_HOST.default
    http_port: int = server.HTTP_PORT.default
    http_names: str = server.HTTP_NAMES.default
    http_origins: str = server.HTTP_ORIGINS.default
    plugins: str = server.PLUGINS.default
    grace_s: float = server.GRACE_S.default
    poll_ms: int = server.POLL_MS.default
    read_threads: int = server.READ_THREADS.default
    max_message_bytes: int = server.MAX_MESSAGE_BYTES.default
    max_connections: int = server.MAX_CONNECTIONS.default
    max_calls: int = server.MAX_CALLS.default
    max_streams: int = server.MAX_STREAMS.default
    max_leases: int = server.MAX_LEASES.default
    push_window: int = server.PUSH_WINDOW.default
    calls_per_s: float = server.CALLS_PER_S.default
    max_models: int = server.MAX_MODELS.default
    max_attributes: int = server.MAX_MODEL_ATTRIBUTES.default
    max_values: int = server.MAX_ATTRIBUTE_VALUES.default
    max_classes: int = server.MAX_MODEL_CLASSES.default
    max_name_characters: int = server.MAX_NAME_CHARACTERS.default
    max_learning_cost: int = server.MAX_LEARNING_COST.default
    max_batch_rows: int = server.MAX_BATCH_ROWS.default
    max_memory_bytes: int = server.MAX_MEMORY_BYTES.default
    max_model_memory_bytes: int = server.MAX_MODEL_MEMORY_BYTES.default
    check_s: float = server.CHECK_S.default
    grower: bool = server.GROWER.default
    grower_ttl_s: float = server.GROWER_TTL_S.default
    keep_trees: int = server.KEEP_TREES.default
    snapshot_interval_s: float = server.SNAPSHOT_INTERVAL_S.default
    agenda_share: float = server.AGENDA_SHARE.default

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _explained_error(error) from None
        self._check_security()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the given values: `load` reads the other sources, and tracks the source of each value."""
        return (init_settings,)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth(cls, value: object, info: ValidationInfo) -> object:
        """Check booleans here, because pydantic would convert True to 1."""
        if isinstance(value, bool):
            server.PARAMETERS[str(info.field_name)].check(value)
        return value

    @field_validator("workers", mode="before")
    @classmethod
    def _count_cores(cls, value: object) -> object:
        if value == AUTO:
            return min(usable_cores(), int(server.WORKERS.highest)) if SHARES_PORTS else 1
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _check(cls, value: object, info: ValidationInfo) -> object:
        return server.PARAMETERS[str(info.field_name)].check(value)

    def _check_security(self) -> None:
        if bool(self.tls_cert) != bool(self.tls_key):
            missing = "tls_key" if self.tls_cert else "tls_cert"
            raise BadConfiguration(f"{missing}: is missing, a certificate and its private key go together")
        if self.tls_client_ca and not self.tls_cert:
            raise BadConfiguration("tls_client_ca: needs tls_cert and tls_key as well")
        for key, host in self._hosts.items():
            if not (self.tls_cert or self.plaintext or is_loopback(host)):
                raise BadConfiguration(
                    f"{key}: is {shown(host)}, which other machines can reach, and what they send would cross the "
                    "network in the clear: give tls_cert and tls_key, or set plaintext if a reverse proxy terminates "
                    "TLS"
                )
        for origin in self.origins:
            if _ORIGIN.fullmatch(origin) is None:
                raise BadConfiguration(
                    f"http_origins: has {shown(origin)}, must be origins as a browser sends them, such as "
                    "https://app.example.org or http://localhost:5173, separated by commas"
                )

    @property
    def _hosts(self) -> dict[str, str]:
        """The hosts on which the server listens, by key."""
        return {"host": self.host} | ({"http_host": self.http_host} if self.http_port else {})

    @property
    def needs_tokens(self) -> bool:
        """True if every call needs a bearer token."""
        reachable = not all(map(is_loopback, self._hosts.values()))
        return self.access == "tokens" or (self.access == "auto" and reachable)

    @property
    def names(self) -> list[str]:
        """Host names under which HTTP is answered, besides those of this machine."""
        return _split(self.http_names)

    @property
    def origins(self) -> list[str]:
        """Origins whose pages may make calls by HTTP."""
        return _split(self.http_origins)

    @cached_property  # used for every message
    def message_limits(self) -> MessageLimits:
        """Bounds of the contents of a message."""
        return MessageLimits(**{field.name: getattr(self, field.name) for field in fields(MessageLimits)})

    @property
    def store_url(self) -> str:
        """The store as a URL: a plain path becomes ``sqlite:///path``, quoted as URLs require."""
        return self.store if is_url(self.store) else file_url(Path(self.store))

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
        flags : values from the command line; None stands for a flag that was not given.
        environ : the environment; by default ``os.environ``.
        file : TOML file; by default the one that ``QUERCUS_CONFIG`` names, if any.

        Raises
        ------
        BadConfiguration
            For an unknown key or variable, a value of the wrong type or out of bounds, or a file that cannot be read.
        """
        environ = os.environ if environ is None else environ
        try:
            check_environment(environ)
        except InvalidInput as error:
            raise BadConfiguration(str(error)) from None
        given: dict[str, tuple[object, str]] = {}
        if (path := file or environ.get(PREFIX + "CONFIG") or None) is not None:
            given |= {key: (value, f"[server] of {path}") for key, value in _read_file(Path(path)).items()}
        environment = EnvSettingsSource(cls)
        environment.env_vars = {name.lower(): value for name, value in environ.items()}
        given |= {
            key: (value, f"environment variable {PREFIX}{key.upper()}")
            for key, value in environment().items()
        }
        given |= {
            key: (value, "flag --limit" if key in LIMITS else f"flag --{key.replace('_', '-')}")
            for key, value in (flags or {}).items()
            if value is not None
        }
        for key, (_, source) in given.items():
            if key not in server.PARAMETERS:
                raise _unknown_key(key, f" (from {source})")
        try:
            return cls(**{key: value for key, (value, _) in given.items()})
        except BadConfiguration as error:
            key = str(error).partition(":")[0]
            if key not in given:  # the error is that it is missing
                raise
            raise BadConfiguration(f"{error} (from {given[key][1]})") from None


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _unknown_key(key: str, source: str = "") -> BadConfiguration:
    known = ", ".join(sorted(server.PARAMETERS))
    return BadConfiguration(
        f"{key}: is not a key of the server's configuration{source}; the keys are {known}"
    )


def _explained_error(error: ValidationError) -> BadConfiguration:
    first = error.errors()[0]
    key = str(first["loc"][0])
    if key not in server.PARAMETERS:
        return _unknown_key(key)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInput):
        return BadConfiguration(f"{key}: {cause.reason}")
    return BadConfiguration(f"{key}: is {shown(first['input'])}, {server.PARAMETERS[key].bound_text}")


def read_limits(given: Sequence[str]) -> dict[str, object]:
    """Parse the values ``KEY=VALUE`` of ``--limit``.

    Raises
    ------
    BadConfiguration
        If one is not of that form, or its key is not a limit.
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


def _read_file(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as stream:
            tables = tomllib.load(stream)
    except OSError as error:
        raise BadConfiguration(f"cannot read the configuration file {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # ValueError also for integers with thousands of digits
        raise BadConfiguration(f"the configuration file {path} is not TOML: {error}") from None
    for key in tables:
        if key != "server":
            raise BadConfiguration(
                f"{key}: stands outside the table [server], which holds the keys of the server (from {path})"
            )
    table = tables.get("server", {})
    if not isinstance(table, dict):
        raise BadConfiguration(f"server: must be a table (from {path})")
    return table
