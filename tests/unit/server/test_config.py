"""Flags before environment before file before defaults; errors name key and source."""

from pathlib import Path
from typing import Any

import pytest

from quercus.server.config import LIMITS, BadConfiguration, Config, read_limits
from quercus.specification import server
from quercus.storage.store import Store

EVERYWHERE = "0.0.0.0"


def test_defaults() -> None:
    config = Config.load(environ={})
    assert config == Config()
    assert (config.host, config.port, config.store_url) == ("127.0.0.1", 50051, "sqlite:///quercus.db")


def test_the_nearest_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "quercus.toml"
    file.write_text('[server]\nport = 1\nhost = "::1"\ngrace_s = 3\nstore = "file.db"\n')
    environ = {
        "QUERCUS_CONFIG": str(file),
        "QUERCUS_PORT": "2",
        "QUERCUS_HOST": "localhost",
        "QUERCUS_GROWER": "no",
    }
    config = Config.load({"port": 3, "host": None}, environ=environ)
    assert (config.port, config.host, config.grace_s, config.store) == (3, "localhost", 3.0, "file.db")
    assert config.grower is False


def test_the_snapshot_interval_comes_from_any_source(tmp_path: Path) -> None:
    assert Config.load(environ={}).snapshot_interval_s == 0.2
    file = tmp_path / "quercus.toml"
    file.write_text("[server]\nsnapshot_interval_s = 3\n")
    assert Config.load(environ={}, file=file).snapshot_interval_s == 3.0
    environ = {"QUERCUS_SNAPSHOT_INTERVAL_S": "0.5"}
    assert Config.load(environ=environ, file=file).snapshot_interval_s == 0.5
    assert Config.load({"snapshot_interval_s": 0.0}, environ=environ, file=file).snapshot_interval_s == 0.0


@pytest.mark.parametrize("key", LIMITS)
def test_every_bound_comes_from_any_source_and_is_bounded(key: str, tmp_path: Path) -> None:
    default = getattr(Config(), key)
    value = 50 if default >= 50 or default == 0 else 2000
    value = {"max_message_bytes": 2048, "agenda_share": 0.5}.get(key, value)
    assert getattr(Config.load(read_limits([f"{key}={value}"]), environ={}), key) == value
    assert getattr(Config.load(environ={f"QUERCUS_{key.upper()}": str(value)}), key) == value
    file = tmp_path / "quercus.toml"
    file.write_text(f"[server]\n{key} = {value}\n")
    assert getattr(Config.load(environ={}, file=file), key) == value
    for beyond in ("-1", str(2**64)):
        with pytest.raises(
            BadConfiguration, match=rf"{key}: is .*, must (lie|be a whole number) in .*from flag --limit\)"
        ):
            Config.load(read_limits([f"{key}={beyond}"]), environ={})


def test_the_error_of_a_bound_that_is_no_number_names_its_flag() -> None:
    with pytest.raises(BadConfiguration, match=r"max_models: is 'abc', must be .* \(from flag --limit\)"):
        Config.load(read_limits(["max_models=abc"]), environ={})


@pytest.mark.parametrize("text", ["max_models", "port=1", "=3"])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(BadConfiguration, match="must be KEY=VALUE with a key of max_message_bytes, "):
        read_limits([text])


def test_file_given_by_flag_beats_the_one_of_the_environment(tmp_path: Path) -> None:
    for name, port in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text(f"[server]\nport = {port}\n")
    assert Config.load(environ={"QUERCUS_CONFIG": str(tmp_path / "a")}, file=tmp_path / "b").port == 2


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ("a/b.db", "sqlite:///a/b.db"),
        ("/a/b.db", "sqlite:////a/b.db"),
        ("sqlite:///x.db", "sqlite:///x.db"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_a_path_is_a_sqlite_store(store: str, url: str) -> None:
    assert Config(store=store).store_url == url


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "what?.db", "a%20b#c;d@e:f.db", "é.db"])
def test_a_path_may_have_any_characters(name: str, tmp_path: Path) -> None:
    config = Config(store=str(tmp_path / name))
    with Store.open(config.store_url):
        assert (tmp_path / name).is_file()


@pytest.mark.parametrize(
    ("flags", "environ", "text"),
    [
        ({"port": 70_000}, {}, "port: is 70000, must be a whole number in [0, 65535] (from flag --port)"),
        (
            {"keep_trees": 0},
            {},
            "keep_trees: is 0, must be a whole number in [1, 1000000000] (from flag --limit)",
        ),
        (
            {},
            {"QUERCUS_SNAPSHOT_INTERVAL_S": "61"},
            (
                "snapshot_interval_s: is 61.0, must lie in [0.0, 60.0] "
                "(from environment variable QUERCUS_SNAPSHOT_INTERVAL_S)"
            ),
        ),
        (
            {"snapshot_interval_s": "soon"},
            {},
            "snapshot_interval_s: is 'soon', must lie in [0.0, 60.0] (from flag --snapshot-interval-s)",
        ),
        ({"grace_s": -1}, {}, "grace_s: is -1.0, must lie in [0.0, 3600.0] (from flag --grace-s)"),
        ({"grace_s": float("nan")}, {}, "grace_s: is nan, must lie in [0.0, 3600.0] (from flag --grace-s)"),
        (
            {},
            {"QUERCUS_PORT": "x"},
            "port: is 'x', must be a whole number in [0, 65535] (from environment variable QUERCUS_PORT)",
        ),
        ({"port": 1.5}, {}, "port: is 1.5, must be a whole number in [0, 65535] (from flag --port)"),
        ({"port": True}, {}, "port: is True, must be a whole number in [0, 65535] (from flag --port)"),
        ({"store": 7}, {}, "store: is 7, must be text and not empty (from flag --store)"),
        ({"store": " "}, {}, "store: is ' ', must be text and not empty (from flag --store)"),
        ({"grower": "maybe"}, {}, "grower: is 'maybe', must be True or False (from flag --grower)"),
        (
            {"log_level": "loud"},
            {},
            "log_level: is 'loud', must be one of debug, info, warning, error (from flag --log-level)",
        ),
    ],
)
def test_bad_values(flags: dict[str, Any], environ: dict[str, str], text: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        Config.load(flags, environ=environ)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            "[server]\nprot = 1\n",
            "prot: is not a key of the server's configuration (from [server] of {file})",
        ),
        (
            "[server]\nport = '1x'\n",
            "port: is '1x', must be a whole number in [0, 65535] (from [server] of {file})",
        ),
        ("server = 1\n", "server: must be a table (from {file})"),
        (
            "port = 1\n",
            "port: stands outside the table [server], which holds the keys of the server (from {file})",
        ),
        ("[servr]\nport = 1\n", "servr: stands outside the table [server]"),
        ("[server\n", "the configuration file {file} is not TOML: "),
        ("port = " + "9" * 5000, "the configuration file {file} is not TOML: "),
        ("port = " + "[" * 5000, "the configuration file {file} is not TOML: "),
    ],
)
def test_bad_files(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "quercus.toml"
    file.write_text(content)
    with pytest.raises(BadConfiguration) as caught:
        Config.load(environ={}, file=file)
    assert str(caught.value).startswith(text.format(file=file))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=r"cannot read the configuration file .*No such file"):
        Config.load(environ={}, file=tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"host": EVERYWHERE}, "host: is '0\\.0\\.0\\.0', which other machines can reach"),
        ({"host": "::"}, "host: is '::', which other machines can reach"),
        ({"host": "sensor-hub.example.org"}, "other machines can reach"),
        ({"access": "none"}, "access: is 'none', must be one of auto, open, tokens"),
        ({"tls_cert": "a.pem"}, "tls_key: is missing"),
        ({"tls_key": "a.key"}, "tls_cert: is missing"),
        ({"tls_client_ca": "ca.pem"}, "tls_client_ca: needs tls_cert and tls_key"),
    ],
)
def test_what_would_leave_a_door_open_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(BadConfiguration, match=said):
        Config(**fields)


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        ({}, False),
        ({"host": "::1"}, False),
        ({"host": "127.8.9.1"}, False),
        ({"access": "tokens"}, True),
        ({"host": EVERYWHERE, "plaintext": True}, True),
        ({"host": EVERYWHERE, "tls_cert": "a", "tls_key": "b"}, True),
        ({"host": EVERYWHERE, "tls_cert": "a", "tls_key": "b", "access": "open"}, False),
    ],
)
def test_tokens_are_asked_for_wherever_others_can_reach(fields: dict[str, Any], needed: bool) -> None:
    assert Config(**fields).needs_tokens is needed


def test_every_declared_parameter_is_a_key() -> None:
    assert set(Config.model_fields) == set(server.PARAMETERS)
    for name, field in Config.model_fields.items():
        assert field.default == server.PARAMETERS[name].default
        assert field.annotation is server.PARAMETERS[name].kind
