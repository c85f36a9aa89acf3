"""The declaration of every metric of the server: name, kind, sentence, labels and unit.

The counters and gauges are created from this table, and so are the dashboard and the alerts in ``deploy/``, and the
page of metrics in the documentation. A test compares the table with the response of a live server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

_CALL: Final = ("grpc_type", "grpc_service", "grpc_method")


@dataclass(frozen=True)
class MetricRow:
    """One metric.

    Attributes
    ----------
    name : name for Prometheus; for counters without ``_total``.
    kind : kind of the metric.
    sentence : description of the metric.
    labels : labels that distinguish its series.
    unit : unit in Grafana; ``bool`` for 0 and 1.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    sentence: str
    labels: tuple[str, ...] = ()
    unit: str = "short"

    @property
    def sample_name(self) -> str:
        """The name of its samples; for a histogram, that of its buckets."""
        return self.name + {"counter": "_total", "gauge": "", "histogram": "_bucket"}[self.kind]


STARTED: Final = MetricRow("grpc_server_started", "counter", "Calls that began.", _CALL, "ops")
HANDLED: Final = MetricRow(
    "grpc_server_handled", "counter", "Calls that ended, by status.", (*_CALL, "grpc_code"), "ops"
)
HANDLING: Final = MetricRow(
    "grpc_server_handling_seconds",
    "histogram",
    "Time from the start to the end of calls that are not streams.",
    _CALL,
    "s",
)
RECEIVED: Final = MetricRow(
    "grpc_server_msg_received", "counter", "Messages of streams received.", _CALL, "ops"
)
SENT: Final = MetricRow("grpc_server_msg_sent", "counter", "Messages of streams sent.", _CALL, "ops")
PUSHED: Final = MetricRow(
    "quercus_rows_pushed", "counter", "Rows acknowledged, also those that were there already.", unit="ops"
)
CLASSIFIED: Final = MetricRow("quercus_rows_classified", "counter", "Rows classified.", unit="ops")
CALLS: Final = (STARTED, HANDLED, HANDLING, RECEIVED, SENT, PUSHED, CLASSIFIED)

IN_FLIGHT: Final = MetricRow("quercus_calls_in_flight", "gauge", "Calls under way.")
WRITES_WAITING: Final = MetricRow("quercus_writes_waiting", "gauge", "Writes that wait.")
WRITABLE: Final = MetricRow("quercus_store_writable", "gauge", "Whether the store takes writes.", unit="bool")
GROWER_UP: Final = MetricRow(
    "quercus_grower_up", "gauge", "Whether the grower runs and reports progress.", unit="bool"
)
GROWER_RESTARTS: Final = MetricRow(
    "quercus_grower_restarts", "counter", "Growers that had to be started again."
)
STORE_UP: Final = MetricRow("quercus_store_up", "gauge", "Whether the store can be read.", unit="bool")
STORE_BYTES: Final = MetricRow("quercus_store_bytes", "gauge", "Size of the store's files.", unit="bytes")
DISK_FREE: Final = MetricRow(
    "quercus_store_free_bytes", "gauge", "Free bytes on the disk of the store.", unit="bytes"
)
GROWER_MODELS: Final = MetricRow(
    "quercus_grower_models",
    "gauge",
    "Models that a live grower of the store has taken; only of a store that servers share.",
    ("grower",),
)
CERTIFICATE_END: Final = MetricRow(
    "quercus_certificate_end_timestamp_seconds",
    "gauge",
    "When the server's certificate expires, in seconds since 1970; only with TLS.",
    unit="s",
)
BUILD: Final = MetricRow(
    "quercus_build_info",
    "gauge",
    "1; the labels say which version runs on which Python.",
    ("version", "python"),
)
SERVER: Final = (
    BUILD,
    IN_FLIGHT,
    WRITES_WAITING,
    STORE_UP,
    WRITABLE,
    STORE_BYTES,
    DISK_FREE,
    GROWER_UP,
    GROWER_RESTARTS,
    GROWER_MODELS,
    CERTIFICATE_END,
)


def _of_a_model(name: str, sentence: str, unit: str = "short") -> MetricRow:
    return MetricRow(f"quercus_model_{name}", "gauge", sentence, ("model",), unit)


INSTANCES: Final = _of_a_model("instances", "Instances in the log.")
COMMITTED: Final = _of_a_model("sequence_committed", "Newest event of the log.")
GROWN: Final = _of_a_model("sequence_grown", "Newest event that the tree contains.")
LAG: Final = _of_a_model(
    "lag_seconds", "How long the oldest event that the tree does not contain has waited.", "s"
)
TREE_VERSION: Final = _of_a_model("tree_version", "Version of the newest tree.")
OPEN: Final = _of_a_model("queries_open", "Queries that wait for a labeller.")
LEASED: Final = _of_a_model("queries_leased", "Queries that labellers hold.")
ANSWERED: Final = _of_a_model("queries_answered", "Queries answered, ever.")
REFUSED: Final = _of_a_model("queries_refused", "Queries refused, without refusals that were taken back.")
BUDGET: Final = _of_a_model("budget", "Queries that may ever be answered.")
CONFLICTS: Final = _of_a_model(
    "conflicts", "Answers that contradicted all earlier evidence on their instance."
)
OTHER_NAMES: Final = _of_a_model(
    "other_names", "Values in the rows of the tree that are names beyond the bound of their attribute."
)
RECENT_ROWS: Final = _of_a_model(
    "recent_rows", "The last rows whose label came after their prediction, at most 1,000."
)
RECENT_ACCURACY: Final = _of_a_model(
    "recent_accuracy",
    "Mean probability, under the labels of these rows, of the classes that were predicted.",
    "percentunit",
)
ACCURACY_FALL: Final = _of_a_model(
    "accuracy_fall", "How far the accuracy fell within the last 1,000 labels; 0 if it did not.", "percentunit"
)
CHANGED_ATTRIBUTES: Final = _of_a_model(
    "changed_attributes", "Attributes whose values differ in the last 500 rows from those before."
)
MODEL: Final = (
    INSTANCES,
    COMMITTED,
    GROWN,
    LAG,
    TREE_VERSION,
    OPEN,
    LEASED,
    ANSWERED,
    REFUSED,
    BUDGET,
    CONFLICTS,
    OTHER_NAMES,
    RECENT_ROWS,
    RECENT_ACCURACY,
    ACCURACY_FALL,
    CHANGED_ATTRIBUTES,
)

METRICS: Final = (*CALLS, *SERVER, *MODEL)
"""All metrics of a server. Those of the process (``process_*``, ``python_info``) come from Prometheus's library."""

BACKUP: Final = MetricRow(
    "quercus_backup_timestamp_seconds",
    "gauge",
    "When the newest backup passed its check, in seconds since 1970; from the backup's timer, not from the server.",
    unit="s",
)
