"""The chart for Kubernetes: Helm's own engine renders it, and what comes out fits the schemas of Kubernetes.

`make chart` installs both, and runs these tests.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.checkout import ROOT

from quercus.specification.environment import check_environment

helm = pytest.importorskip("helm_python.chart", reason="needs helm-python-sdk: make chart")
schemas = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate: make chart")
pytestmark = pytest.mark.release

CHART = ROOT / "deploy" / "helm" / "quercus"
KUBERNETES = ("1.27", "1.33", "1.37")
"""The oldest version that the chart allows, one between, and the newest of which there is a schema."""
SECRET: dict[str, Any] = {"tls": {"secret": "cert"}}
USES: dict[str, dict[str, Any]] = {
    "one server with a file": SECRET,
    "several with PostgreSQL": SECRET
    | {
        "store": {"postgresql": "postgresql://quercus@db/quercus", "passwordSecret": "db"},
        "server": {
            "replicas": 3,
            "environment": {"QUERCUS_MAX_MODELS": "100"},
            "service": {"type": "LoadBalancer"},
        },
        "console": {"names": ["label.example.org"], "environment": {"QUERCUS_CONSOLE_SEND_DELAY_S": "2"}},
        "image": {"pullSecrets": [{"name": "registry"}]},
    },
    "plaintext behind a mesh": {"tls": {"plaintext": True}, "store": {"storageClass": "fast"}},
    "without a console": SECRET | {"console": {"enabled": False}, "monitoring": {"enabled": True}},
    "monitored": SECRET | {"monitoring": {"enabled": True, "labels": {"release": "prometheus"}}},
}
CUSTOM = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator, for which Kubernetes has no schemas."""


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    with helm.Chart.load(CHART) as chart:
        texts = chart.render(values, name="oak", namespace="plant")
    return [each for text in texts.values() for each in yaml.safe_load_all(text) if each]


@pytest.mark.parametrize("use", USES)
def test_what_it_makes_fits_the_schemas(use: str) -> None:
    report = helm.lint(CHART, USES[use], strict=True)
    assert [each for each in report["messages"] if each["severity"] > 1] == report["errors"] == []
    made = rendered(USES[use])
    kinds = [each["kind"] for each in made]
    assert {"StatefulSet", "Service"} <= set(kinds)
    assert ("Deployment" in kinds) == (use != "without a console")
    assert (set(kinds) >= CUSTOM) == ("monitoring" in USES[use])
    for version in KUBERNETES:
        for each in made:
            if each["kind"] not in CUSTOM:
                schemas.validate(each, version, strict=True)


@pytest.mark.parametrize("use", USES)
def test_its_parts_fit_together(use: str) -> None:
    made = rendered(USES[use])
    programs = [each for each in made if each["kind"] in {"StatefulSet", "Deployment"}]
    for program in programs:
        template = program["spec"]["template"]
        labels = template["metadata"]["labels"]
        assert program["spec"]["selector"]["matchLabels"].items() <= labels.items()
        (container,) = template["spec"]["containers"]
        given = {each["name"]: each.get("value", "") for each in container["env"]}
        assert len(given) == len(container["env"])
        check_environment(given)
        volumes = {each["name"] for each in template["spec"]["volumes"]}
        volumes |= {each["metadata"]["name"] for each in program["spec"].get("volumeClaimTemplates", ())}
        assert {each["name"] for each in container["volumeMounts"]} == volumes
        served = [
            service["spec"]
            for service in made
            if service["kind"] == "Service" and service["spec"]["selector"].items() <= labels.items()
        ]
        ports = {each["name"] for each in container["ports"]}
        assert sorted(port["targetPort"] for each in served for port in each["ports"]) == sorted(ports)
    assert all(
        port["name"] != "http"
        for each in made
        if each["kind"] == "Service" and each["spec"].get("type", "ClusterIP") != "ClusterIP"
        for port in each["spec"]["ports"]
    )


def test_the_console_calls_the_server() -> None:
    made = {(each["kind"], each["metadata"]["name"]): each for each in rendered(SECRET)}
    (container,) = made["Deployment", "oak-console"]["spec"]["template"]["spec"]["containers"]
    address = {each["name"]: each["value"] for each in container["env"]}["QUERCUS_SERVER"]
    assert address == "tls://oak.plant.svc:50051"
    assert made["Service", "oak"]["spec"]["ports"][0]["port"] == 50051


def test_the_rules_are_those_of_prometheus(tmp_path: Path) -> None:
    (rule,) = (each for each in rendered(USES["monitored"]) if each["kind"] == "PrometheusRule")
    rules = ROOT / "deploy" / "prometheus" / "quercus.rules.yml"
    assert rule["spec"] == yaml.safe_load(rules.read_text(encoding="utf-8"))
    if shutil.which("promtool") is not None:
        (tmp_path / "rules.yml").write_text(json.dumps(rule["spec"]))
        subprocess.run(
            ["promtool", "check", "rules", str(tmp_path / "rules.yml")], check=True, capture_output=True
        )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "tls.secret: name the Secret"),
        (SECRET | {"server": {"replicas": 2}}, "server.replicas: several servers need a store in PostgreSQL"),
        (
            SECRET | {"store": {"postgresql": "postgresql://quercus:sesame@db/quercus"}},
            "does not match pattern",
        ),
        (SECRET | {"sever": {}}, "additional properties 'sever' not allowed"),
        (SECRET | {"console": {"replicas": 2}}, "maximum"),
    ],
)
def test_values_that_do_not_go_together_are_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(Exception, match=why):
        rendered(values)


def test_its_version_is_that_of_quercus() -> None:
    from quercus import __version__

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__
