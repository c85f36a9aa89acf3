"""``quercus bridge``: messages of other systems become rows of a model, and its events go to other systems."""

from __future__ import annotations

import os
import socket
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    JsonOption,
    ServerOption,
    err,
    needs_extra,
    on_signals,
    out,
    report,
    warn_of_certificate,
)
from quercus.cli.options import secret_of
from quercus.client.bridges.messages import MessageFormat
from quercus.client.client import Client
from quercus.specification.hosts import is_loopback

if TYPE_CHECKING:
    from quercus.client.bridges.mqtt import MqttBridge
    from quercus.client.bridges.redis_streams import RedisBridge
    from quercus.client.bridges.webhook import WebhookBridge

MAX_CONNECTIONS = 64
"""Maximum number of simultaneous connections to the backend for Label Studio."""

ReceivingModelOption = Annotated[
    str, typer.Option("--model", "-m", help="Model to which the rows are pushed.", show_default=False)
]
IdFieldOption = Annotated[
    str,
    typer.Option("--id-field", metavar="NAME", help="Field of a message that contains the id of the row."),
]
LabelFieldOption = Annotated[
    str,
    typer.Option(
        "--label-field",
        metavar="NAME",
        help="Field of a message that contains the label (default: no labels).",
    ),
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="NAME", help="Ignore this field; repeatable.")
]
RejectedLinesOption = Annotated[
    Path | None,
    typer.Option(
        "--rejected",
        metavar="FILE",
        help="Append refused rows and invalid messages to this file, as JSON lines, up to 256 MiB.",
    ),
]
BrokerAuthoritiesOption = Annotated[
    Path | None,
    typer.Option("--broker-ca", metavar="FILE", help="Certificates of the broker's authorities (PEM)."),
]
StopAfterOption = Annotated[
    int | None, typer.Option("--stop-after", min=1, help="Number of messages after which to stop.")
]
PUSHED = "messages: {messages:,}; rows stored: {stored:,}, already there: {known:,}, rejected: {rejected:,}"

app = typer.Typer(
    no_args_is_help=True, help="Connect a model with other systems: MQTT, Redis, webhooks, Label Studio."
)


@app.callback()
def bridge() -> None:
    """Connect a model with other systems: MQTT, Redis, webhooks, Label Studio."""


@app.command("mqtt")
def mqtt(
    *,
    model: ReceivingModelOption,
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
    id_field: IdFieldOption = "id",
    label_field: LabelFieldOption = "",
    ignore: IgnoreOption = None,
    rejected: RejectedLinesOption = None,
    broker_ca: BrokerAuthoritiesOption = None,
    limit: StopAfterOption = None,
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
    with needs_extra("bridge mqtt", "mqtt"):
        from quercus.client.bridges.mqtt import Broker, MqttBridge  # noqa: PLC0415  (an extra)
    source = Broker(
        broker,
        topic,
        client_id or f"quercus-{model}",
        os.environ.get("QUERCUS_MQTT_USERNAME"),
        os.environ.get("QUERCUS_MQTT_PASSWORD"),
        None if broker_ca is None else str(broker_ca),
    )
    form = MessageFormat(id_field, label_field, frozenset(ignore or ()))
    with Client(server) as client, _appending(rejected) as stream:
        made = MqttBridge(client, model, source, form, rejected=stream, notify=_print_note)
        _run_bridge(made, limit, as_json, PUSHED)


@app.command("redis")
def redis(
    *,
    model: ReceivingModelOption,
    stream: Annotated[
        list[str],
        typer.Option("--stream", "-t", metavar="KEY", help="Stream to read; repeatable.", show_default=False),
    ],
    broker: Annotated[
        str,
        typer.Option(
            "--broker",
            metavar="URL",
            help="Address of the Redis server: redis://HOST:PORT/DATABASE, or rediss:// for TLS.",
        ),
    ] = "redis://127.0.0.1:6379",
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME",
            help="Consumer group, which stores the position in the stream (default: quercus-MODEL).",
        ),
    ] = None,
    consumer: Annotated[
        str | None,
        typer.Option(
            "--consumer",
            metavar="NAME",
            help="Name of this bridge in the group (default: the machine's name).",
        ),
    ] = None,
    payload_field: Annotated[
        str, typer.Option("--field", metavar="NAME", help="Field of an entry that contains the message.")
    ] = "data",
    id_field: IdFieldOption = "id",
    label_field: LabelFieldOption = "",
    ignore: IgnoreOption = None,
    rejected: RejectedLinesOption = None,
    broker_ca: BrokerAuthoritiesOption = None,
    limit: StopAfterOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Push the entries of Redis streams to a model, until Ctrl-C or SIGTERM.

    An entry has a field with a JSON object of attributes, or a list of objects. The bridge acknowledges it to its
    consumer group after the server has committed its rows, so none is lost; the ids prevent duplicates. A new group
    begins with the first entry. Name and password are read from QUERCUS_REDIS_USERNAME and QUERCUS_REDIS_PASSWORD.

    Try:

        quercus bridge redis --stream wine --model wine --ignore time
        quercus bridge redis -t wine -m wine --broker rediss://redis.example
    """
    with needs_extra("bridge redis", "redis"):
        from quercus.client.bridges.redis_streams import (  # noqa: PLC0415  (an extra)
            RedisBridge,
            StreamGroup,
        )
    source = StreamGroup(
        broker,
        stream,
        group or f"quercus-{model}",
        consumer or socket.gethostname(),
        payload_field,
        os.environ.get("QUERCUS_REDIS_USERNAME"),
        os.environ.get("QUERCUS_REDIS_PASSWORD"),
        None if broker_ca is None else str(broker_ca),
    )
    form = MessageFormat(id_field, label_field, frozenset(ignore or ()))
    with Client(server) as client, _appending(rejected) as lines:
        made = RedisBridge(client, model, source, form, rejected=lines, notify=_print_note)
        _run_bridge(made, limit, as_json, PUSHED)


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
            "--max-attempts", min=1, help="Maximum number of attempts per event (default: unlimited)."
        ),
    ] = None,
    given_up: Annotated[
        Path | None,
        typer.Option(
            "--given-up", metavar="FILE", help="Append undeliverable events to this file, as JSON lines."
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
    with (
        Client(server) as client,
        closing(Position(state or Path(f"{model}.webhook"), model)) as position,
        _appending(given_up) as stream,
    ):
        made = hooks.WebhookBridge(
            client,
            model,
            receiver,
            signer,
            position,
            kinds=kind or (),
            with_values=with_values,
            given_up=stream,
            notify=_print_note,
        )
        text = (
            "events delivered: {delivered:,}, attempts: {attempts:,}, given up: {given_up:,}; "
            "the last event is {sequence:,}"
        )
        _run_bridge(made, limit, as_json, text)


@app.command("label-studio")
def label_studio(
    *,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="Model that predicts, and learns from the annotations.", show_default=False
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free one.")] = 9090,
    item: Annotated[
        str, typer.Option("--item", metavar="FIELD", help="Field of a task's data with the id of the row.")
    ] = "id",
    question: Annotated[
        str,
        typer.Option(
            "--question",
            metavar="NAME",
            help="Name of the Choices element, if there are several with the classes.",
        ),
    ] = "",
    labeller: Annotated[
        str,
        typer.Option(
            "--labeller", metavar="NAME", help="Labeller of all answers (default: the annotator of each)."
        ),
    ] = "",
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            metavar="FILE",
            help="File that contains the secret part of the URL (default: QUERCUS_LABEL_STUDIO_SECRET).",
        ),
    ] = None,
    tls_cert: Annotated[
        str, typer.Option("--tls-cert", metavar="FILE", help="Certificate (PEM), which enables TLS.")
    ] = "",
    tls_key: Annotated[
        str, typer.Option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM).")
    ] = "",
    plaintext: Annotated[
        bool,
        typer.Option(
            "--plaintext", help="Serve other machines without TLS because a reverse proxy terminates it."
        ),
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
) -> None:
    """Run a machine-learning backend of Label Studio, until Ctrl-C or SIGTERM.

    Label Studio gets the possible classes of a row, and a score by which it can sort the rows most in need of a label
    to the top. Annotations become statements about the row, whose id is in a field of the task. The command prints
    "backend at URL": enter this URL in Label Studio under Settings, Model. With a secret, enter URL/SECRET: requests
    without it are refused.

    Try:

        quercus bridge label-studio --model wine --item row
        quercus bridge label-studio -m wine --secret-file studio.secret
    """
    with needs_extra("bridge label-studio", "console"):
        from quercus.client.bridges.label_studio import (  # noqa: PLC0415  (the console extra)
            BackendConfig,
            application,
        )
        from quercus.client.http_serving import listen, serve  # noqa: PLC0415
    if bool(tls_cert) != bool(tls_key):
        raise typer.BadParameter("a certificate and its private key go together: --tls-cert and --tls-key")
    secret = secret_of(secret_file, "QUERCUS_LABEL_STUDIO_SECRET")
    if not is_loopback(host):
        if not secret:
            raise typer.BadParameter(
                f"other machines can reach {host} and could state labels: give --secret-file, as openssl rand -hex 16 "
                "writes it"
            )
        if not (tls_cert or plaintext):
            raise typer.BadParameter(
                f"other machines can reach {host}: give --tls-cert and --tls-key, or --plaintext if a reverse proxy "
                "terminates TLS"
            )
    config = BackendConfig(server, model, item, question, labeller, secret)
    with Client(server) as client:
        client.get_model(model)  # report errors of server, token or name now
    warn_of_certificate(tls_cert, tls_key)
    listening = listen(host, port)
    where = f"[{host}]" if ":" in host else host
    url = f"{'https' if tls_cert else 'http'}://{where}:{listening.getsockname()[1]}"
    if secret:
        err.print(f"enter {url}/SECRET in Label Studio, with the secret of this backend", soft_wrap=True)
    out.print(f"backend at {url}", soft_wrap=True)
    app = application(config, _print_note)
    serve(app, listening, tls_cert, tls_key, max_connections=MAX_CONNECTIONS)


def _print_note(text: str) -> None:
    err.print(text, style="dim", soft_wrap=True)


def _appending(path: Path | None) -> AbstractContextManager[IO[str] | None]:
    """Open a file for appending; None if no file is wanted."""
    return nullcontext() if path is None else path.open("a", encoding="utf-8")


def _run_bridge(
    bridge: MqttBridge | RedisBridge | WebhookBridge, limit: int | None, as_json: bool, text: str
) -> None:
    """Run a bridge until `limit` or a signal, and report its counts: ``text`` has a format field for each of them."""
    with on_signals(lambda _: bridge.stop(), "SIGINT", "SIGTERM"):
        try:
            bridge.run(limit)
        finally:
            counts = asdict(bridge.tally)
            report(as_json, counts, text.format(**counts))
