"""Alerts and dashboard name metrics that a live server has, all of them, and Prometheus takes the files."""

import importlib.util
import json
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from integration.client.serving import Serving
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from support.checkout import ROOT

from quercus.client import Client, Nominal, Specification
from quercus.server.telemetry.metric_table import (
    BACKUP,
    CERTIFICATE_END,
    GROWER_MODELS,
    METRICS,
    RECENT_ACCURACY,
    RECENT_ROWS,
)

DEPLOY = ROOT / "deploy"
ELSEWHERE = (CERTIFICATE_END, GROWER_MODELS, RECENT_ROWS, RECENT_ACCURACY)
"""Not of this server: it has no TLS, shares its store with none, and has predicted nothing."""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deploy_generate", DEPLOY / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Metric]]:
    """Yield the metrics that Prometheus reads from a server that had a call of each kind."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serving = Serving(
        tmp_path_factory.mktemp("metrics"),
        0,
        "--http-port",
        str(port),
        grower=False,
    )
    with Client(serving.address) as client:
        client.create_model("m", Specification([Nominal("a", ["x", "y"])], ["yes", "no"]))
        client.push("m", [{"a": "x"}, {"a": "y"}], ids=["1", "2"], batch_rows=1)  # on a stream
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        families = {each.name: each for each in text_string_to_metric_families(page.read().decode())}
    yield families
    assert serving.stop() == 0


def test_the_table_is_what_a_server_answers(scrape: dict[str, Metric]) -> None:
    own = {name for name in scrape if name.startswith(("quercus_", "grpc_server_"))}
    assert own == {row.name for row in METRICS} - {CERTIFICATE_END.name}  # this one has no TLS
    for row in METRICS:
        if row != CERTIFICATE_END:
            family = scrape[row.name]
            assert (family.type, family.documentation) == (row.kind, row.sentence)
            assert all(set(row.labels) <= set(sample.labels) for sample in family.samples)


def named_metrics(expr: str) -> set[str]:
    """Return the names of the server's metrics in an expression."""
    return set(re.findall(r"\b(?:quercus|grpc_server|process)_\w+\b", expr))


def expressions(generator: ModuleType) -> list[str]:
    """Return every expression of both files."""
    panels = json.loads(generator.dashboard_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [*(alert.expr for alert in generator.ALERTS), *shown]


def test_every_expression_names_samples_that_are_there(
    generator: ModuleType, scrape: dict[str, Metric]
) -> None:
    there = {sample.name: set(sample.labels) for family in scrape.values() for sample in family.samples}
    there |= {row.sample_name: set(row.labels) for row in (*ELSEWHERE, BACKUP)}
    for expr in expressions(generator):
        named = named_metrics(expr)
        assert named <= set(there), expr
        if named:
            used = set(re.findall(r"(\w+)=~?\"", expr)) | set(
                re.findall(r"by \(([^)]*)\)", expr + "by ()")[0].split(", ")
            )
            known = set.union(*(there[name] for name in named)) | {"instance", "job", "le", ""}
            assert used <= known, expr
    shown = {name for expr in expressions(generator) for name in named_metrics(expr)}
    assert shown == {row.sample_name for row in (*METRICS, BACKUP)}


def test_the_files_are_those_that_the_table_makes(generator: ModuleType) -> None:
    hint = f"write them again: {generator.WRITTEN_BY}"
    assert generator.RULES.read_text() == generator.alert_rules(), hint
    assert generator.BOARD.read_text() == generator.dashboard_text(), hint


def test_the_board_has_a_panel_for_every_metric() -> None:
    board = json.loads((DEPLOY / "grafana" / "quercus.json").read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert all(panel["description"] for panel in panels)
    assert {panel["title"] for panel in panels} == {row.name for row in METRICS}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_prometheus_takes_the_alerts() -> None:
    result = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"],
        cwd=DEPLOY / "prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "15 rules found" in result.stdout


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_alerts_fire_when_they_should(generator: ModuleType, tmp_path: Path) -> None:
    alerts = {alert.name: alert for alert in generator.ALERTS}
    (tmp_path / "alerts.yml").write_text(
        json.dumps(
            {
                "rule_files": [str(DEPLOY / "prometheus" / "quercus.rules.yml")],
                "evaluation_interval": "1m",
                "tests": [fires(alerts[name], *rest) for name, *rest in FIRING],
            }
        )
    )
    result = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


FIRING_MINUTES = 2400
"""Longer than the age at which a backup is stale, a day and a half."""

FIRING = (
    ("QuercusDown", {'up{job="quercus",instance="s"}': "1 1 0x2500"}, {"job": "quercus", "instance": "s"}),
    ("QuercusStoreNotWritable", {'quercus_store_writable{instance="s"}': "1 0x2500"}, {"instance": "s"}),
    ("QuercusGrowerDown", {'quercus_grower_up{instance="s"}': "0x2500"}, {"instance": "s"}),
    (
        "QuercusTreeLags",
        {'quercus_model_lag_seconds{instance="s",model="m"}': "400x2500"},
        {"model": "m", "instance": "s"},
    ),
    (
        "QuercusBudgetSpent",
        {'quercus_model_budget{model="m"}': "9x2500", 'quercus_model_queries_answered{model="m"}': "9x2500"},
        {"model": "m"},
    ),
    ("QuercusBackupStale", {'quercus_backup_timestamp_seconds{instance="s"}': "0x2500"}, {"instance": "s"}),
    (
        "QuercusAccuracyFalls",
        {'quercus_model_accuracy_fall{instance="s",model="m"}': "0.125x2500"},
        {"model": "m", "instance": "s"},
    ),
    ("QuercusCertificateEnds", {"quercus_certificate_end_timestamp_seconds": "86400x2500"}, {}),
)


def fires(alert: Any, series: dict[str, str], labels: dict[str, str]) -> dict[str, object]:
    """A test of promtool: the alert is firing after these minutes, with these words."""

    def words(template: str) -> str:
        for key, value in labels.items():
            template = template.replace(f"{{{{ $labels.{key} }}}}", value)
        template = template.replace("{{ $value | humanizeDuration }}", "6m 40s")
        template = template.replace("{{ $value | humanizePercentage }}", "12.5%")
        return re.sub(r"{{.*?}}", "", template)

    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "alert_rule_test": [
            {
                "eval_time": f"{FIRING_MINUTES}m",
                "alertname": alert.name,
                "exp_alerts": [
                    {
                        "exp_labels": {"severity": alert.severity, **labels},
                        "exp_annotations": {"summary": words(alert.summary), "description": words(alert.fix)},
                    }
                ],
            }
        ],
    }
