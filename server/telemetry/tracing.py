"""Traces for OpenTelemetry, if its environment variables ask for them."""

from __future__ import annotations

import logging
import os
from typing import Any, Final

from quercus.server.wire.errors import BadStart
from quercus.specification.distribution import install_command

_log = logging.getLogger(__name__)
_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
)


class Tracing:
    """Sends a span for every call.

    Nothing is imported or sent unless OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
    OTEL_TRACES_EXPORTER is set, and the last is not ``none``.

    Raises
    ------
    BadStart
        If traces are wanted and OpenTelemetry is not installed, or the exporter is neither otlp nor console.
    """

    def __init__(self) -> None:
        self._provider: Any = None
        self.interceptors: list[Any] = []
        exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
        if not any(os.environ.get(name) for name in _VARIABLES) or exporter == "none":
            return
        if exporter not in ("otlp", "console"):
            raise BadStart(f"OTEL_TRACES_EXPORTER: is {exporter!r}, must be otlp, console or none")
        try:
            from opentelemetry.instrumentation.grpc import aio_server_interceptor  # noqa: PLC0415 - an extra
            from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

            if exporter == "otlp":
                from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415
                    OTLPSpanExporter as Exporter,
                )
            else:
                from opentelemetry.sdk.trace.export import (  # type: ignore[assignment]  # noqa: PLC0415
                    ConsoleSpanExporter as Exporter,
                )
        except ModuleNotFoundError as error:
            raise BadStart(
                f"traces are asked for by the environment ({', '.join(n for n in _VARIABLES if n in os.environ)}), "
                f"and {error.name} is not installed: {install_command('tracing')}"
            ) from None
        name = os.environ.get("OTEL_SERVICE_NAME", "quercus")
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
        self._provider.add_span_processor(BatchSpanProcessor(Exporter()))
        make: Any = aio_server_interceptor
        self.interceptors = [make(tracer_provider=self._provider)]
        _log.info("traces go to OpenTelemetry (%s)", exporter)

    def close(self) -> None:
        """Send the remaining spans."""
        if self._provider is not None:
            self._provider.shutdown()
            self._provider = None
