"""``quercus console``: pages in a browser, served by this process."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from quercus.cli.certificates import warn_of_certificate
from quercus.cli.common import DEFAULT_SERVER, ServerOption, err, needs_extra, out
from quercus.cli.options import option
from quercus.specification import console as parameters
from quercus.specification.parameter import Parameter


def configured_option(parameter: Parameter, **more: Any) -> Any:
    """Return an option of the console; its environment variable is QUERCUS_CONSOLE_NAME."""
    return option(parameter, envvar=f"QUERCUS_CONSOLE_{parameter.name.upper()}", **more)


def console(
    *,
    server: ServerOption = DEFAULT_SERVER,
    host: Annotated[str, configured_option(parameters.HOST)] = parameters.HOST.default,
    port: Annotated[int, configured_option(parameters.PORT)] = parameters.PORT.default,
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
    tls_cert: Annotated[str, configured_option(parameters.TLS_CERT, metavar="FILE")] = "",
    tls_key: Annotated[str, configured_option(parameters.TLS_KEY, metavar="FILE")] = "",
    plaintext: Annotated[bool, configured_option(parameters.PLAINTEXT)] = False,
    access: Annotated[str, configured_option(parameters.ACCESS)] = parameters.ACCESS.default,
    send_delay_s: Annotated[
        float, configured_option(parameters.SEND_DELAY_S)
    ] = parameters.SEND_DELAY_S.default,
    lease_s: Annotated[float, configured_option(parameters.LEASE_S)] = parameters.LEASE_S.default,
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
        host=host,
        port=port,
        names=tuple(name or ()),
        media=tuple(media or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        tls_cert=tls_cert,
        tls_key=tls_key,
        plaintext=plaintext,
        access=access,
        send_delay_s=send_delay_s,
        lease_s=lease_s,
    )
    warn_of_certificate(config.tls_cert, config.tls_key)
    listening = listen(config)
    if config.access == "open" and not config.on_loopback:
        err.print(
            "warning: anybody who reaches this console may label, if the server asks for no token",
            style="yellow",
        )
    err.print(
        f"server {config.server}; stop with Ctrl-C or SIGTERM", style="dim", markup=False, soft_wrap=True
    )
    out.print(f"console at {console_url(config, listening)}", soft_wrap=True)
    serve(config, listening)
