"""``quercus bridge``: messages of other systems become rows of a model, and its events go to other systems."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack, closing
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
    needs_extra,
    out,
    print_json,
)
from quercus.cli.label_studio import label_studio
from quercus.cli.options import secret_of

if TYPE_CHECKING:
    from quercus.client.bridges.mqtt import MqttBridge
    from quercus.client.bridges.webhook import WebhookBridge

app = typer.Typer(
    no_args_is_help=True, help="Connect a model with other systems: MQTT, webhooks, Label Studio."
)


@app.callback()
def bridge() -> None:
    """Connect a model with other systems: MQTT, webhooks, Label Studio."""


@app.command("mqtt")
def mqtt(
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Model to which the rows are pushed.", show_default=False)
    ],
    topic: Annotated[
        list[str],
        typer.Option(
            "--topic",
            "-t",
            help="Topic to subscribe to, such as plant/+/wine; repeatable.",
            show_default=False,
        ),
    ],
    broker: Annotated[
        str,
        typer.Option(
            "--broker", metavar="URL", help="Address of the broker: mqtt://HOST:PORT, or mqtts:// for TLS."
        ),
    ] = "mqtt://127.0.0.1:1883",
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id", metavar="ID", help="Id of the session at the broker (default: quercus-MODEL)."
        ),
    ] = None,
    id_field: Annotated[
        str,
        typer.Option(
            "--id-field", metavar="NAME", help="Field of a message that contains the id of the row."
        ),
    ] = "id",
    label_field: Annotated[
        str,
        typer.Option(
            "--label-field",
            metavar="NAME",
            help="Field of a message that contains the label (default: no labels).",
        ),
    ] = "",
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="NAME", help="Ignore this field; repeatable.")
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected",
            metavar="FILE",
            help="Append refused rows and invalid messages to this file, as JSON lines.",
        ),
    ] = None,
    broker_ca: Annotated[
        Path | None,
        typer.Option("--broker-ca", metavar="FILE", help="Certificates of the broker's authorities (PEM)."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--stop-after", min=1, help="Number of messages after which to stop.")
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Push the messages of an MQTT broker to a model, until Ctrl-C or SIGTERM.

    A message is a JSON object of attributes, or a list of objects. The bridge acknowledges it to the broker after the
    server has committed its rows, so none is lost; the ids prevent duplicates. Name and password are read from
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
            notify=lambda text: err.print(text, style="dim", soft_wrap=True),
        )
        _run_bridge(
            made,
            limit,
            as_json,
            lambda: (
                f"{made.tally.messages:,} messages: {made.tally.stored:,} rows stored, "
                f"{made.tally.known:,} there already, {made.tally.rejected:,} rejected"
            ),
        )


@app.command("webhook")
def webhook(
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Model whose events are sent.", show_default=False)
    ],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="URL of the receiver.", show_default=False)
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="File that stores the position of the last delivered event (default: MODEL.webhook).",
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            metavar="FILE",
            help="File that contains the signing secret (default: QUERCUS_WEBHOOK_SECRET).",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", metavar="KIND", help="Send only events of this kind; repeatable (default: all)."
        ),
    ] = None,
    with_values: Annotated[
        bool, typer.Option("--values", help="Send the values of the rows as well.")
    ] = False,
    max_attempts: Annotated[
        int | None,
        typer.Option(
            "--max-attempts", min=1, help="Attempts per event before it is given up (default: unlimited)."
        ),
    ] = None,
    given_up: Annotated[
        Path | None,
        typer.Option(
            "--given-up", metavar="FILE", help="Append events that were given up to this file, as JSON lines."
        ),
    ] = None,
    receiver_ca: Annotated[
        Path | None,
        typer.Option(
            "--receiver-ca", metavar="FILE", help="Certificates of the receiver's authorities (PEM)."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--stop-after", min=1, help="Number of events after which to stop.")
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Post the events of a model to a webhook, signed, until Ctrl-C or SIGTERM.

    The bridge posts each event of the log as a CloudEvent, in order, and repeats it until the receiver answers 2xx. A
    file stores the position, from which the next run continues. The secret is whsec_ and base64 of 24 to 64 random
    bytes; the receiver checks the signature with it (standardwebhooks.com).

    Kinds: instance, answer, refusal, specification, correction, opinion, statement.

    Try:

        quercus bridge webhook -m wine --url https://app.example/hook
        quercus bridge webhook -m wine --url https://app.example/ --kind answer
    """
    with needs_extra("bridge webhook", "webhook"):
        from quercus.client.bridges import webhook as hooks  # noqa: PLC0415  (an extra)
        from quercus.client.bridges.webhook_messages import Signer  # noqa: PLC0415
        from quercus.client.bridges.webhook_position import Position  # noqa: PLC0415
    secret = secret_of(secret_file, "QUERCUS_WEBHOOK_SECRET")
    if not secret:
        raise typer.BadParameter("give the secret by --secret-file or QUERCUS_WEBHOOK_SECRET")
    signer = Signer(secret)
    receiver = hooks.Receiver(url, max_attempts, None if receiver_ca is None else str(receiver_ca))
    with ExitStack() as stack:
        client = stack.enter_context(connect(server))
        position = stack.enter_context(closing(Position(state or Path(f"{model}.webhook"), model)))
        stream = None if given_up is None else stack.enter_context(given_up.open("a", encoding="utf-8"))
        made = hooks.WebhookBridge(
            client,
            model,
            receiver,
            signer,
            position,
            kinds=kind or (),
            with_values=with_values,
            given_up=stream,
            notify=lambda text: err.print(text, style="dim", soft_wrap=True, markup=False),
        )
        _run_bridge(
            made,
            limit,
            as_json,
            lambda: (
                f"{made.tally.delivered:,} events delivered in {made.tally.attempts:,} attempts, "
                f"{made.tally.given_up:,} given up; the last one is {made.tally.sequence:,}"
            ),
        )


app.command("label-studio")(label_studio)


def _run_bridge(
    bridge: MqttBridge | WebhookBridge, limit: int | None, as_json: bool, text: Callable[[], str]
) -> None:
    """Run a bridge until `limit` or a signal, and report what it did."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: bridge.stop())
    try:
        bridge.run(limit)
    finally:
        if as_json:
            print_json(asdict(bridge.tally))
        else:
            out.print(text())
