"""``quercus console``: pages in a browser, served by this process."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from quercus.cli.common import DEFAULT_SERVER, ServerOption, err, needs_extra, out, warn_of_certificate
from quercus.cli.options import option, with_options
from quercus.specification.console import PARAMETERS
from quercus.specification.hosts import is_loopback


def console_options() -> dict[str, Any]:
    """Return an option for each parameter of the console, with the environment variable QUERCUS_CONSOLE_NAME."""
    options: dict[str, Any] = {}
    for name, parameter in PARAMETERS.items():
        more = {"metavar": "FILE"} if name in ("tls_cert", "tls_key", "sign_on_users") else {}
        made = option(parameter, envvar=f"QUERCUS_CONSOLE_{name.upper()}", **more)
        options[name] = Annotated[parameter.kind, made]
    return options


@with_options(console_options(), {name: each.default for name, each in PARAMETERS.items()})
def console(
    *,
    server: ServerOption = DEFAULT_SERVER,
    options: dict[str, Any],
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            envvar="QUERCUS_CONSOLE_NAME",
            help="Host name that browsers may use for the console; repeatable.",
        ),
    ] = None,
    media: Annotated[
        list[str] | None,
        typer.Option(
            "--media",
            metavar="ORIGIN",
            envvar="QUERCUS_CONSOLE_MEDIA",
            help="Origin of pictures and sounds that pages may load, such as https://cam.example; repeatable.",
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            envvar="QUERCUS_CONSOLE_TRUSTED_PROXY",
            help="Address or network of a reverse proxy on another machine; repeatable. Failures to sign in then count "
            "for the browser's address, which the proxy gives in X-Forwarded-For.",
        ),
    ] = None,
    sign_on_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--sign-on-proxy",
            metavar="ADDRESS",
            envvar="QUERCUS_CONSOLE_SIGN_ON_PROXY",
            help="Address from which the sign-on proxy connects; repeatable. Elsewhere the header is ignored.",
        ),
    ] = None,
) -> None:
    """Label rows, view trees and classify in a browser: run the console until Ctrl-C or SIGTERM.

    Users sign in with their own token (quercus tokens create), or with a name if the server
    needs no tokens. The console stores nothing on disk and has no rights of its own. It prints "console at URL"
    once it answers.

    Try:

        quercus console
        quercus console --server tls://quercus.example:50051
        quercus console --port 9000 --media https://cam.example
    """
    with needs_extra("console", "console"):
        from quercus.console.config import ConsoleConfig  # noqa: PLC0415  (the console extra)
        from quercus.console.run import console_url, listen, refuse_own_token, serve  # noqa: PLC0415
    refuse_own_token()
    config = ConsoleConfig(
        server=server,
        names=tuple(name or ()),
        media=tuple(media or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        sign_on_proxies=tuple(sign_on_proxy or ()),
        **options,
    )
    warn_of_certificate(config.tls_cert, config.tls_key)
    listening = listen(config)
    if config.access == "open" and not config.on_loopback:
        err.print(
            "warning: anybody who can reach this console may label, if the server requires no token",
            style="yellow",
        )
    if any(is_loopback(each) for each in config.sign_on_proxies):
        err.print(
            "warning: the sign-on proxy is on this machine, so any program on it may sign in as any of its users",
            style="yellow",
            soft_wrap=True,
        )
    err.print(f"server {config.server}; stop with Ctrl-C or SIGTERM", style="dim", soft_wrap=True)
    out.print(f"console at {console_url(config, listening)}", soft_wrap=True)
    serve(config, listening)
