"""Write the alerts and the dashboard (prometheus/quercus.rules.yml, grafana/quercus.json) from the metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quercus.server.telemetry import metric_table as t
from quercus.server.telemetry.metric_table import MetricRow

FOLDER = Path(__file__).resolve().parent
RULES = FOLDER / "prometheus" / "quercus.rules.yml"
BOARD = FOLDER / "grafana" / "quercus.json"
WRITTEN_BY = "python deploy/generate.py"
SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True)
class Alert:
    """An alert of Prometheus: when `expr` has held for `lasts`."""

    name: str
    expr: str
    lasts: str
    severity: str
    summary: str
    fix: str


_FAULTS = "Internal|Unknown|DataLoss"
ALERTS = (
    Alert(
        "QuercusDown",
        'up{job="quercus"} == 0',
        "1m",
        "critical",
        "The server at {{ $labels.instance }} does not answer Prometheus.",
        "Look at its log: journalctl -u quercus",
    ),
    Alert(
        "QuercusStoreUnreadable",
        f"{t.STORE_UP.sample_name} == 0",
        "1m",
        "critical",
        "The server at {{ $labels.instance }} cannot read its store.",
        "Run quercus check; restore a backup if it reports damage.",
    ),
    Alert(
        "QuercusStoreNotWritable",
        f"{t.WRITABLE.sample_name} == 0",
        "1m",
        "critical",
        "The server at {{ $labels.instance }} rejects rows and answers, because it cannot write its store.",
        "Run quercus status; free space on the disk, or make the folder writable.",
    ),
    Alert(
        "QuercusDiskFull",
        f"predict_linear({t.DISK_FREE.sample_name}[6h], 24 * 3600) < 0 or {t.DISK_FREE.sample_name} < 1e9",
        "10m",
        "warning",
        "The disk of the store at {{ $labels.instance }} is full within a day, or has less than 1 GB left.",
        "Move backups off this disk, delete models, or enlarge the disk.",
    ),
    Alert(
        "QuercusCertificateEnds",
        f"{t.CERTIFICATE_END.sample_name} - time() < 14 * 86400",
        "1h",
        "warning",
        "The certificate of the server at {{ $labels.instance }} expires within 14 days.",
        "Renew the files, then: systemctl reload quercus",
    ),
    Alert(
        "QuercusGrowerDown",
        f"{t.GROWER_UP.sample_name} == 0",
        "2m",
        "critical",
        "No tree grows at {{ $labels.instance }}: the grower does not run, or reports no progress.",
        "Run quercus status; it names the model at which the grower hangs.",
    ),
    Alert(
        "QuercusGrowerRestarts",
        f"changes({t.GROWER_RESTARTS.sample_name}[15m]) > 3",
        "0m",
        "warning",
        "The grower at {{ $labels.instance }} was started again {{ $value }} times in 15 minutes.",
        "Look at the log; the kernel's log says whether memory ran out.",
    ),
    Alert(
        "QuercusTreeLags",
        f"{t.LAG.sample_name} > 300",
        "5m",
        "warning",
        "The tree of model {{ $labels.model }} is {{ $value | humanizeDuration }} behind its log.",
        "Run quercus status; rows may arrive faster than trees of this size can grow.",
    ),
    Alert(
        "QuercusFaults",
        f'sum by (instance, grpc_method) (rate({t.HANDLED.sample_name}{{grpc_code=~"{_FAULTS}"}}[5m])) > 0',
        "5m",
        "warning",
        "{{ $labels.grpc_method }} fails at {{ $labels.instance }} through a fault of the server.",
        "Look at the log for the request ids, and report the fault.",
    ),
    Alert(
        "QuercusRefusesWork",
        f'sum by (instance, grpc_method) (rate({t.HANDLED.sample_name}{{grpc_code="ResourceExhausted"}}[5m])) > 1',
        "10m",
        "warning",
        "{{ $labels.grpc_method }} is rejected more than once a second at {{ $labels.instance }}.",
        "A bound of rate, memory or disk is reached; the log and quercus status name it.",
    ),
    Alert(
        "QuercusSlow",
        f"histogram_quantile(0.99, sum by (instance, grpc_method, le) (rate({t.HANDLING.sample_name}[5m]))) > 5",
        "10m",
        "warning",
        "One in a hundred calls of {{ $labels.grpc_method }} at {{ $labels.instance }} takes longer than 5 s.",
        "Compare quercus_writes_waiting and the load of the machine.",
    ),
    Alert(
        "QuercusBackupStale",
        f"time() - {t.BACKUP.sample_name} > 36 * 3600",
        "10m",
        "warning",
        "The newest backup of the store at {{ $labels.instance }} is older than a day and a half.",
        "journalctl -u quercus-backup.service; then: systemctl start quercus-backup.service",
    ),
    Alert(
        "QuercusAccuracyFalls",
        f"{t.ACCURACY_FALL.sample_name} > 0",
        "0m",
        "warning",
        "The accuracy of model {{ $labels.model }} fell by {{ $value | humanizePercentage }} within its last labels.",
        "quercus models show {{ $labels.model }} names attributes that changed. Label recent rows; a source that has "
        "changed for good needs a model that forgets.",
    ),
    Alert(
        "QuercusNobodyLabels",
        f"{t.OPEN.sample_name} > 0 and changes({t.ANSWERED.sample_name}[1d]) == 0",
        "1h",
        "info",
        "Model {{ $labels.model }} has open queries, and nobody has answered one for a day.",
        "quercus label {{ $labels.model }}",
    ),
    Alert(
        "QuercusBudgetSpent",
        f"{t.BUDGET.sample_name} > 0 and {t.ANSWERED.sample_name} >= {t.BUDGET.sample_name}",
        "5m",
        "info",
        "Model {{ $labels.model }} has spent its budget, and asks for no more labels.",
        "quercus models update {{ $labels.model }} --budget N, if more labels are wanted",
    ),
)


def alert_rules() -> str:
    """Return the file of alerts. Strings are written as JSON, which YAML contains."""
    lines = [f"# Written by `{WRITTEN_BY}`; change that file.", "groups:", "  - name: quercus", "    rules:"]
    for each in ALERTS:
        lines += [
            f"      - alert: {each.name}",
            f"        expr: {json.dumps(each.expr)}",
            f"        for: {each.lasts}",
            f"        labels: {{severity: {each.severity}}}",
            "        annotations:",
            f"          summary: {json.dumps(each.summary)}",
            f"          description: {json.dumps(each.fix)}",
        ]
    return "\n".join(lines) + "\n"


def dashboard_text() -> str:
    """Return the dashboard: a row of panels for each part of the table."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, metrics in (("Server", t.SERVER), ("Models", t.MODEL), ("Calls", t.CALLS)):
        panels.append({"type": "row", "title": title, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y += 1
        for i, row in enumerate(metrics):
            panels.append(
                _panel_json(row) | {"gridPos": {"x": 8 * (i % 3), "y": y + 7 * (i // 3), "w": 8, "h": 7}}
            )
        y += 7 * -(-len(metrics) // 3)
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    return json.dumps(_dashboard_frame(panels), indent=2) + "\n"


def _panel_json(row: MetricRow) -> dict[str, Any]:
    expr, legend = _panel_expression(row)
    unit = {"bool": "bool_yes_no"}.get(row.unit, row.unit)
    if row == t.CERTIFICATE_END:
        expr = f"{row.sample_name} - time()"  # what is left of it
    return {
        "type": "timeseries",
        "title": row.name,
        "description": row.sentence,
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": unit, "min": None if row == t.CERTIFICATE_END else 0},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": expr, "legendFormat": legend}],
    }


def _panel_expression(row: MetricRow) -> tuple[str, str]:
    """Return the expression of a metric's panel, and the name of each line."""
    chosen = '{instance=~"$instance"}'
    if row.kind == "histogram":
        inner = f"sum by (grpc_method, le) (rate({row.sample_name}{chosen}[$__rate_interval]))"
        return f"histogram_quantile(0.99, {inner})", "{{grpc_method}}"
    if row.kind == "counter":
        if not row.labels:
            return f"rate({row.sample_name}{chosen}[$__rate_interval])", "{{instance}}"
        by = "grpc_method, grpc_code" if "grpc_code" in row.labels else "grpc_method"
        legend = "{{grpc_method}} {{grpc_code}}" if "grpc_code" in row.labels else "{{grpc_method}}"
        return f"sum by ({by}) (rate({row.sample_name}{chosen}[$__rate_interval]))", legend
    if "model" in row.labels:
        return f'{row.sample_name}{{instance=~"$instance", model=~"$model"}}', "{{model}}"
    return f"{row.sample_name}{chosen}", "{{instance}}"


def _dashboard_frame(panels: list[dict[str, Any]]) -> dict[str, Any]:
    def template_variable(name: str, metric: MetricRow) -> dict[str, Any]:
        return {
            "name": name,
            "type": "query",
            "datasource": SOURCE,
            "query": f"label_values({metric.sample_name}, {name})",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        }

    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "Quercus",
        "uid": "quercus",
        "tags": ["quercus"],
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {
            "list": [
                source,
                template_variable("instance", t.STORE_UP),
                template_variable("model", t.INSTANCES),
            ]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    RULES.write_text(alert_rules())
    BOARD.write_text(dashboard_text())
