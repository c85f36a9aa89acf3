"""``quercus bridge``: what other systems send becomes rows of a model."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    JsonOption,
    ServerOption,
    connect,
    err,
    fail,
    out,
    print_json,
)

if TYPE_CHECKING:
    from quercus.client.bridges.mqtt import BridgeTally

app = typer.Typer(no_args_is_help=True, help="Push what other systems send to a model.")


@app.callback()
def bridge() -> None:
    """Push what other systems send to a model."""


@app.command("mqtt")
def mqtt(
    *,
    model: Annotated[str, typer.Option("--model", "-m", help="Whose rows they are.", show_default=False)],
    topic: Annotated[
        list[str], typer.Option("--topic", "-t", help="As in plant/+/wine; repeatable.", show_default=False)
    ],
    broker: Annotated[
        str, typer.Option("--broker", metavar="URL", help="mqtt://HOST:PORT; mqtts:// for TLS.")
    ] = "mqtt://127.0.0.1:1883",
    client_id: Annotated[
        str | None,
        typer.Option("--client-id", metavar="ID", help="Of the session at the broker (quercus-MODEL)."),
    ] = None,
    id_field: Annotated[str, typer.Option("--id-field", metavar="NAME", help="Field with the id.")] = "id",
    label_field: Annotated[
        str, typer.Option("--label-field", metavar="NAME", help="Field with the label (none).")
    ] = "",
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="NAME", help="Field that is no attribute.")
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option("--rejected", metavar="FILE", help="Append messages that are no rows, as JSON lines."),
    ] = None,
    broker_ca: Annotated[
        Path | None, typer.Option("--broker-ca", metavar="FILE", help="Authorities of the broker, PEM.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Stop after so many messages.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Push the messages of an MQTT broker to a model, until Ctrl-C or SIGTERM.

    A message is a JSON object of attributes, or a list of them. It is acknowledged to the broker after the server has
    committed its rows, so none is lost, and its id makes it count once. Name and password are read from
    QUERCUS_MQTT_USERNAME and QUERCUS_MQTT_PASSWORD.

    Try:

        quercus bridge mqtt --topic plant/+/wine --model wine --ignore time
        quercus bridge mqtt -t wine -m wine --broker mqtts://mq.example
    """
    try:
        from quercus.client.bridges.mqtt import Broker, MqttBridge  # noqa: PLC0415  (an extra)
        from quercus.client.bridges.mqtt_messages import MessageFormat  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "paho":
            raise
        fail("`quercus bridge mqtt` needs paho-mqtt: pip install 'quercus[mqtt]'")
    source = Broker(
        broker,
        topic,
        client_id or f"quercus-{model}",
        os.environ.get("QUERCUS_MQTT_USERNAME"),
        os.environ.get("QUERCUS_MQTT_PASSWORD"),
        None if broker_ca is None else str(broker_ca),
    )
    form = MessageFormat(id_field, label_field, frozenset(ignore or ()))
    with ExitStack() as stack:
        client = stack.enter_context(connect(server))
        stream = None if rejected is None else stack.enter_context(rejected.open("a", encoding="utf-8"))
        made = MqttBridge(
            client,
            model,
            source,
            form,
            rejected=stream,
            tell=lambda text: err.print(text, style="dim", soft_wrap=True),
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: made.stop())
        try:
            made.run(limit)
        finally:
            _report(made.tally, as_json)


def _report(tally: BridgeTally, as_json: bool) -> None:
    if as_json:
        print_json(asdict(tally))
    else:
        out.print(
            f"{tally.messages:,} messages: {tally.stored:,} rows stored, {tally.known:,} there already, "
            f"{tally.rejected:,} messages rejected"
        )
