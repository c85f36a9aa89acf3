"""``quercus doctor``: check whether this machine can run a server, and has the version of the server that it uses."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import platform
import re
import shutil
import socket
import sqlite3
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from quercus import __version__
from quercus.belief.errors import InvalidInput
from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, report
from quercus.client.client import Client
from quercus.client.errors import QuercusError, Unavailable
from quercus.specification.distribution import DISTRIBUTION, install_command
from quercus.view.words import counted

if TYPE_CHECKING:  # the server extra
    from quercus.server.config import Config

State = Literal["ok", "note", "warning", "fault"]

LEAST_PYTHON: Final = (3, 11)
LOW_DISK: Final = 1e9
FULL_DISK: Final = 6e6
"""Minimum of free bytes with which a server can write."""
CERTIFICATE_WARNING_DAYS: Final = 30
LEAST_FILES: Final = 4096
"""Minimum for the limit of open files; each connection is one."""
ANSWER_S: Final = 5.0
"""Maximum wait, in seconds, for the server to report its version."""
STA_UNSYNC: Final = 0x40
"""Status bit of an unsynchronised kernel clock, see ``adjtimex(2)``."""


@dataclass(frozen=True)
class CheckFinding:
    """The finding of a check.

    Attributes
    ----------
    name : name of the check.
    state : ``ok``, ``note`` (worth knowing), ``warning`` (a server can run) or ``fault`` (it cannot, or not well).
    found : the finding in words.
    fix : instructions; empty if all is well.
    """

    name: str
    state: State
    found: str
    fix: str = ""


def check_python() -> CheckFinding:
    """Check the version of Python, and report that of SQLite."""
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    if sys.version_info < LEAST_PYTHON:
        return CheckFinding("python", "fault", versions, "install Python 3.11 or newer, and Quercus with it")
    return CheckFinding("python", "ok", versions)


def check_packages() -> CheckFinding:
    """Check that the packages of the extra ``server`` are installed."""
    missing = []
    for line in importlib.metadata.requires(DISTRIBUTION) or ():
        name, _, marker = line.partition(";")
        if marker and not re.search(r"extra == .server.", marker):
            continue
        distribution = re.split(r"[ <>=!~\[(]", name.strip())[0]
        try:
            importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            missing.append(distribution)
    if missing:
        text = f"not installed: {', '.join(missing)}"
        return CheckFinding("packages", "fault", text, install_command("server"))
    return CheckFinding("packages", "ok", f"quercus {__version__} with its server")


def check_plugins() -> CheckFinding:
    """List the plug-ins of other packages, and check that all installed plug-ins can be imported."""
    from quercus.specification import plugins  # noqa: PLC0415  (only this check needs them)

    of_others = []
    kinds = {plugins.LEARNERS: "learner", plugins.STRATEGIES: "strategy", plugins.READERS: "reader of files"}
    for group, kind in kinds.items():
        for each in plugins.plugins(group):
            if plugins.package_of(each) == DISTRIBUTION:
                continue
            try:
                plugins.load_plugin(group, each.name)
            except plugins.PluginError as error:
                text = f"the {kind} {each.name} {error.reason}"
                return CheckFinding("plug-ins", "fault", text, "uninstall the package, or repair it")
            of_others.append(f"{kind} {each.name} ({plugins.origin_of(each)})")
    return CheckFinding("plug-ins", "ok", ", ".join(of_others) or "none from other packages")


def check_server(address: str) -> CheckFinding:
    """Compare the version of the server that clients on this machine use with the version installed here.

    Parameters
    ----------
    address
        Address of the server.
    """
    try:
        with Client(address, timeout_s=ANSWER_S, outage_s=0) as client:
            theirs = client.status().version
    except Unavailable as error:
        if address == DEFAULT_SERVER:
            return CheckFinding("server", "ok", f"none answers at {address}")
        return CheckFinding(
            "server", "warning", str(error), "start it, or correct --server or QUERCUS_SERVER"
        )
    except QuercusError as error:
        fix = "correct --server, or name the token or the certificates: quercus --token-file FILE doctor"
        return CheckFinding("server", "warning", f"{address} does not report its version: {error}", fix)
    return compare_versions(address, __version__, theirs)


def compare_versions(address: str, ours: str, theirs: str) -> CheckFinding:
    """Compare the versions of client and server: a warning where the major ones differ, a note where the minor ones do.

    Parameters
    ----------
    address
        Address of the server.
    ours, theirs
        Version of the client, and of the server.

    Examples
    --------
    >>> compare_versions("db:1", "1.4.0", "1.4.2").state, compare_versions("db:1", "1.4.0", "1.10.0").state
    ('ok', 'note')
    >>> print(compare_versions("db:1", "1.4.0", "2.0.0").found)
    db:1 runs quercus 2.0.0, and this machine has 1.4.0: major versions may not understand each other
    """
    text = f"{address} runs quercus {theirs}"
    here, there = (re.match(r"(\d+)\.(\d+)", each) for each in (ours, theirs))
    if here is None or there is None:  # a checkout that was never installed
        return CheckFinding("server", "note", f"{text}, and this machine has {ours}", "compare them yourself")
    mine, its = ((int(each[1]), int(each[2])) for each in (here, there))
    if mine == its:
        return CheckFinding("server", "ok", f"{text}, as this machine does" if ours == theirs else text)
    text += f", and this machine has {ours}"
    older = "the server" if its < mine else "Quercus on this machine"
    fix = f"upgrade {older}, so that both have {max(mine, its)[0]}.{max(mine, its)[1]}"
    if mine[0] != its[0]:
        return CheckFinding("server", "warning", f"{text}: major versions may not understand each other", fix)
    return CheckFinding("server", "note", f"{text}: the older one lacks what the newer one added", fix)


def has_server() -> bool:
    """Return whether the packages that the server needs are installed."""
    return all(importlib.util.find_spec(name) for name in ("scipy", "sqlalchemy", "pydantic_settings"))


def check_kernels() -> CheckFinding:
    """Check that the compiled kernels exist, and match this Python and these sources."""
    try:
        import quercus.kernels  # noqa: PLC0415  (the kernels)
    except ImportError as error:
        return CheckFinding("kernels", "fault", *str(error).split("; ", 1))
    return CheckFinding("kernels", "ok", f"built, in {Path(quercus.kernels.__file__).parent}")


def check_store(config: Config) -> CheckFinding:
    """Check that the store can be read and written, check its schema, and make a quick check of the file for damage."""
    from quercus.storage.dialect import dialect_for  # noqa: PLC0415  (the server extra)
    from quercus.storage.engine import Database  # noqa: PLC0415
    from quercus.storage.errors import StorageError  # noqa: PLC0415
    from quercus.storage.migrate import check_known, stored_revision  # noqa: PLC0415
    from quercus.storage.schema import HEAD  # noqa: PLC0415

    dialect = dialect_for(config.store_url, 5.0)
    name = dialect.store_name
    try:
        dialect.check_reachable()
        if dialect.is_missing():
            return CheckFinding("store", "ok", f"{name} does not exist yet; the first start creates it")
        database = Database(dialect_for(config.store_url, 5.0, read_only=True))
        try:
            database.check_file(config.check_s)
            with database.read() as connection:
                revision = stored_revision(connection, name)
            size = database.size_bytes()
        finally:
            database.close()
    except (StorageError, InvalidInput) as error:
        fix = (
            "start the database server with the settings of docs/postgresql.md and let this user in, or correct --store"
            if dialect.folder is None
            else "make the file and its folder readable and writable for the server, or restore a backup"
        )
        return CheckFinding("store", "fault", str(error), fix)
    if revision is None:
        return CheckFinding("store", "ok", f"{name} is empty; the first start creates its tables")
    text = f"{name}, {size / 1e6:,.1f} MB, schema {revision}"
    if revision != HEAD:
        try:
            check_known(revision, name)
        except StorageError as error:
            fix = "use the version of Quercus that wrote it, or bring the models over: quercus export, quercus import"
            return CheckFinding("store", "fault", str(error), fix)
        fix = "none needed; make a backup first if you may want to go back: quercus backup FILE"
        return CheckFinding("store", "warning", f"{text}; the next start upgrades it to {HEAD}", fix)
    return CheckFinding("store", "ok", text)


def check_disk(config: Config) -> CheckFinding:
    """Check the free space on the disk of the store."""
    from quercus.storage.dialect import dialect_for  # noqa: PLC0415  (the server extra)

    folder = dialect_for(config.store_url, 5.0).folder
    if folder is None:
        return CheckFinding("disk", "ok", "on the database server; check there")
    if not folder.is_dir():
        return CheckFinding("disk", "fault", f"the folder {folder} does not exist", f"mkdir -p {folder}")
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:,.1f} GB free in {folder}"
    fix = "free space, or move the store to another disk (--store)"
    if free < FULL_DISK:
        return CheckFinding(
            "disk", "fault", f"{free / 1e6:,.1f} MB free in {folder}; nothing can be stored", fix
        )
    return CheckFinding("disk", "warning" if free < LOW_DISK else "ok", text, fix if free < LOW_DISK else "")


def check_port(config: Config, flags: str = "") -> CheckFinding:
    """Check that the server can listen on an address, or that a server already answers there.

    Parameters
    ----------
    config
        The configuration of the server.
    flags
        Prefix of the flags of the address: `HTTP`, or empty for gRPC.
    """
    from quercus.server.gate.listening import check_address, join_address  # noqa: PLC0415  (the server extra)
    from quercus.server.wire.errors import BadStart  # noqa: PLC0415

    name = "http port" if flags else "port"
    host, port = (config.http_host, config.http_port) if flags else (config.host, config.port)
    if flags and not port:
        return CheckFinding(name, "ok", "off; --http-port turns it on")
    address = join_address(host, port)
    try:
        check_address(host, port, flags)
    except BadStart as error:
        if "in use" in str(error) and _speaks_http2(config):
            return CheckFinding(name, "ok", f"{address} is in use by a gRPC server, perhaps this one")
        fix = f"choose another --{flags}port or --{flags}host, or stop that program"
        return CheckFinding(name, "fault", str(error), fix)
    return CheckFinding(name, "ok", f"{address} is free")


def _speaks_http2(config: Config) -> bool:
    """Return whether the listening program speaks HTTP/2, as gRPC does; with TLS this is assumed."""
    if config.tls_cert:
        return True
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)  # noqa: S104 - asked, not bound
    try:
        with socket.create_connection((host, config.port), timeout=2) as asked:
            asked.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
            return asked.recv(9)[3:4] == b"\x04"  # SETTINGS, the first frame of every server
    except OSError:
        return False


def check_workers(config: Config) -> CheckFinding:
    """Check that there is a core for each worker, and that the system lets workers share a port."""
    from quercus.server.machine import SHARES_PORTS, usable_cores  # noqa: PLC0415  (the server extra)

    cores = usable_cores()
    text = f"{config.workers} on {counted(cores, 'core')}"
    if config.workers > 1 and not SHARES_PORTS:
        text = f"{config.workers}, and {sys.platform} does not divide connections among processes"
        return CheckFinding("workers", "fault", text, "leave workers at 1, or run the server on Linux")
    if config.workers > cores:
        return CheckFinding("workers", "warning", text, f"run at most one worker per core: --workers {cores}")
    return CheckFinding("workers", "ok", text)


def check_certificate(config: Config) -> CheckFinding:
    """Check that certificate and key belong together, and how long the certificate is valid."""
    from quercus.server.gate.certificate_dates import certificate_end  # noqa: PLC0415  (the server extra)

    if not config.tls_cert:
        return CheckFinding("certificate", "ok", "no TLS")
    fix = "renew the files, then send the server SIGHUP (systemctl reload quercus)"
    try:
        end = certificate_end(config.tls_cert, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        return CheckFinding("certificate", "fault", f"{config.tls_cert}, {config.tls_key}: {why}", fix)
    days = (end - time.time()) / 86_400
    if days <= 0:
        return CheckFinding("certificate", "fault", f"{config.tls_cert} has expired", fix)
    text = f"{config.tls_cert} expires in {days:,.0f} days"
    low = days < CERTIFICATE_WARNING_DAYS
    return CheckFinding("certificate", "warning" if low else "ok", text, fix if low else "")


def check_clock() -> CheckFinding:
    """Check that a time service keeps the clock right. Displayed times and tokens depend on it; leases do not."""
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    state = _kernel_clock()
    if state is not None and state & STA_UNSYNC:
        fix = "run a time service, such as systemd-timesyncd or chrony"
        return CheckFinding("clock", "warning", f"{now}; not kept by a time service", fix)
    return CheckFinding("clock", "ok", now if state is None else f"{now}, kept by a time service")


def _kernel_clock() -> int | None:
    """Return the status bits of the kernel's clock; None if they cannot be read, as on systems other than Linux."""
    if not sys.platform.startswith("linux"):
        return None
    buffer = ctypes.create_string_buffer(256)  # struct timex, modes 0: read only
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) < 0:
            return None
    except (OSError, AttributeError):
        return None
    at = 5 * ctypes.sizeof(ctypes.c_long)  # modes (padded), offset, freq, maxerror, esterror
    return int.from_bytes(buffer.raw[at : at + 4], sys.byteorder)


def check_files() -> CheckFinding:
    """Check the limit of open files, and so of connections."""
    import resource  # noqa: PLC0415  (not on every system)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < LEAST_FILES:
        fix = f"ulimit -n {LEAST_FILES} before the start, or LimitNOFILE= in the unit of systemd"
        return CheckFinding("files", "warning", f"at most {soft:,} open files (hard limit {hard:,})", fix)
    return CheckFinding("files", "ok", f"at most {soft:,} open files")


def all_findings(load: Callable[[], Config], server: str) -> Iterator[CheckFinding]:
    """Run every check, in order. Checks that need the server extra run only if it is installed.

    Parameters
    ----------
    load : reads the configuration; its error is a finding.
    server : address of the server that this machine's clients use.
    """
    yield check_python()
    yield check_packages()
    yield check_plugins()
    yield check_server(server)
    if has_server():
        from quercus.server.config import BadConfiguration  # noqa: PLC0415  (the server extra)
        from quercus.server.gate.listening import HTTP  # noqa: PLC0415
        from quercus.storage.dialect import dialect_for  # noqa: PLC0415
        from quercus.storage.errors import StorageError  # noqa: PLC0415

        yield check_kernels()
        try:
            config = load()
        except BadConfiguration as error:
            yield CheckFinding(
                "configuration", "fault", str(error), "correct the flag, the variable or the file"
            )
        else:
            yield CheckFinding("configuration", "ok", "every key is known and within its bounds")
            try:
                dialect_for(config.store_url, 5.0)
            except (StorageError, InvalidInput) as error:
                yield CheckFinding("store", "fault", str(error), "correct --store, or install the driver")
            else:
                yield check_store(config)
                yield check_disk(config)
            yield check_port(config)
            yield check_port(config, HTTP)
            yield check_workers(config)
            yield check_certificate(config)
    yield check_clock()
    if importlib.util.find_spec("resource"):
        yield check_files()


_STYLES = {"ok": "green", "note": "cyan", "warning": "yellow", "fault": "bold red"}


def doctor(
    *,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="The store: a file or postgresql://user@host/database."),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate of the server (PEM).")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The server's TOML file.", envvar="QUERCUS_CONFIG"),
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Check whether this machine can run a server, and show how to fix faults.

    Checks Python, packages, the compiled kernels, the configuration, the store and its schema, the disk, the
    ports, the number of workers, the certificate, the clock and the limit of open files. If a server answers at
    --server, its version is compared with the one here. Run it as the user of the server. Nothing is changed.

    Exit code 1 if there is a fault. A server can run in spite of warnings.

    Try:

        quercus doctor
        quercus doctor --config /etc/quercus/quercus.toml
        quercus doctor --json
    """

    def load_config() -> Config:
        from quercus.server.config import Config  # noqa: PLC0415  (the server extra)

        flags = {"store": store, "host": host, "port": port, "tls_cert": tls_cert, "tls_key": tls_key}
        return Config.load(flags, file=config)

    findings = list(all_findings(load_config, server))
    well = all(each.state != "fault" for each in findings)
    table = RichTable("", "", Column(overflow="fold"), box=None, show_header=False, pad_edge=False)
    for each in findings:
        table.add_row(Text(each.state, style=_STYLES[each.state]), each.name, each.found)
        if each.fix and each.state != "ok":
            table.add_row("", "", Text(f"→ {each.fix}", style="dim"))
    report(as_json, {"well": well, "checks": [asdict(each) for each in findings]}, table)
    if not well:
        raise typer.Exit(1)
