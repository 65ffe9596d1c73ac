"""The Helm chart, rendered by real helm: Kubernetes' schemas, kafka-dt's settings, and what is in neither."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import javaproperties
import pytest
import yaml  # type: ignore[import-untyped]

from kafka_dt.config import Settings, from_properties, gateway_settings, listeners
from kafka_dt.identity.mechanisms import mechanisms_of
from tests.support.docs.documents import ROOT, marked
from tests.support.kubernetes.charts import ChartRefused, Charts, ChartsMissing

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

SECRETS = "/etc/kafka-dt/secrets/"
TEXTS = {
    "token.key": "k" * 32,
    "users.jaas": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="b";',
    "upstream.jaas": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="g" password="p";',
}
KEY = {"key": {"name": "key"}}
TLS = {"tls": {"name": "certificate"}}
UPSTREAM = {"upstream": {"name": "upstream"}}
ZOOKEEPER = {"connect": "zk-0.zk:2181/kafka-dt"}
PLAINTEXT = {"securityProtocol": "SASL_PLAINTEXT"}
CLUSTER = {"bootstrapServers": "kafka-0.kafka:9093"}
MATRIX: dict[str, dict[str, Any]] = {
    "alone": {"mode": "alone", "zookeeper": ZOOKEEPER, "secrets": {**KEY, **TLS}},
    "alone, every option": {
        "mode": "alone",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS, "users": {"name": "users"}},
        "listener": {"mechanisms": ["PLAIN", "SCRAM-SHA-512"], "advertisedHost": "tokens.example.com"},
        "image": {"repository": "registry.example.com/kafka-dt", "digest": "sha256:" + "0" * 64},
        "imagePullSecrets": [{"name": "registry"}],
        "service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "annotations": {"a/b": "c"}},
        "state": {"persistent": True, "storageClassName": "fast"},
        "networkPolicy": {
            "clients": [{"namespaceSelector": {}}],
            "monitoring": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        },
        "serviceAccount": {"name": "tokens"},
        "settings": {"kafka.dt.tokens.per.owner.max": 50, "kafka.dt.workers": 1},
        "extraVolumes": [{"name": "more", "configMap": {"name": "more"}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/etc/more", "readOnly": True}],
        "extraEnv": [{"name": "A", "value": "b"}],
        "podLabels": {"team": "data"},
        "podAnnotations": {"a": "b"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "drainSeconds": 60,
        "shutdownDelaySeconds": 15,
    },
    "beside": {"mode": "beside", "zookeeper": ZOOKEEPER, "secrets": KEY, "listener": PLAINTEXT},
    "beside, client certificates": {
        "mode": "beside",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS, "clientCa": {"name": "clients"}},
        "listener": {"securityProtocol": "SSL"},
    },
    "gateway by port": {
        "mode": "gateway",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **UPSTREAM, "upstreamCa": {"name": "ca"}},
        "listener": PLAINTEXT,
        "gateway": {**CLUSTER, "brokers": {"ids": [0, 1, 2]}},
    },
    "gateway by the Services' names": {
        "mode": "gateway",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS, **UPSTREAM},
        "gateway": {**CLUSTER, "brokers": {"hostPattern": "service"}},
    },
    "gateway by names of one's own": {
        "mode": "gateway",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS, **UPSTREAM},
        "gateway": {**CLUSTER, "identity": "service", "brokers": {"hostPattern": "broker-{id}.kafka.example.com"}},
    },
    "gateway without a login": {
        "mode": "gateway",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS},
        "gateway": {**CLUSTER, "securityProtocol": "PLAINTEXT", "identity": "none"},
    },
    "gateway on upstream tokens": {
        "mode": "gateway-upstream-tokens",
        "secrets": {**TLS, **UPSTREAM},
        "gateway": {**CLUSTER, "identity": "relay"},
        "listener": {"mechanisms": ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]},
    },
    "without metrics": {
        "mode": "alone",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS},
        "metrics": {"enabled": False},
    },
    "monitored": {
        "mode": "alone",
        "zookeeper": ZOOKEEPER,
        "secrets": {**KEY, **TLS},
        "metrics": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        },
    },
}


PAGE = "docs/how-to/kubernetes.md"
for number, text in enumerate(marked(PAGE, "values"), 1):
    MATRIX[f"the page's values {number}"] = yaml.safe_load(text)
MATRIX["the page's service accounts"] = MATRIX["alone"] | yaml.safe_load(*marked(PAGE, "service accounts"))


@pytest.fixture(scope="module")
def charts() -> Charts:
    try:
        return Charts.fetched()
    except ChartsMissing as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(scope="module", params=MATRIX, ids=str)
def resources(request: pytest.FixtureRequest, charts: Charts) -> list[dict[str, Any]]:
    return charts.render(MATRIX[request.param])


def of_kind(resources: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in resources if each["kind"] == kind]


def one(resources: list[dict[str, Any]], kind: str) -> Any:
    (found,) = of_kind(resources, kind)
    return found


def pod(resources: list[dict[str, Any]]) -> Any:
    return one(resources, "StatefulSet")["spec"]["template"]


def settings_of(resources: list[dict[str, Any]], folder: Path) -> tuple[dict[str, str], Settings]:
    """Read the settings as a node does, with secrets in a folder."""
    texts = javaproperties.loads(one(resources, "ConfigMap")["data"]["server.properties"])
    for text in texts.values():
        if SECRETS in text:
            path = folder / text.partition(SECRETS)[2]
            path.parent.mkdir(exist_ok=True)
            path.write_text(TEXTS.get(path.name, ""))
    found = from_properties({key: text.replace(SECRETS, f"{folder}/") for key, text in texts.items()})
    assert (found.ignored, found.unprotected, found.unknown) == ((), (), ())
    return texts, found.settings


def test_kubernetes_takes_every_resource(charts: Charts, resources: list[dict[str, Any]]) -> None:
    assert charts.check(resources) == []


def test_a_resource_that_kubernetes_does_not_take_is_found(charts: Charts) -> None:
    rendered = charts.render(MATRIX["monitored"])
    pod(rendered)["spec"]["containers"][0]["imagePullPolice"] = "Always"
    one(rendered, "ServiceMonitor")["spec"]["endpoints"][0]["port"] = 9404
    found = "\n".join(charts.check(rendered))
    assert "imagePullPolice" in found
    assert "9404 is not of type 'string'" in found


def test_a_node_takes_the_settings_and_clients_must_log_in(resources: list[dict[str, Any]], tmp_path: Path) -> None:
    texts, settings = settings_of(resources, tmp_path)
    made = listeners(settings, mechanisms_of(settings))
    assert all(each.mechanisms or each.tls for each in made)
    assert not settings.allow_everyone_if_no_acl_found
    assert (gateway_settings(settings, made) is not None) == ("kafka.dt.gateway.upstream.bootstrap.servers" in texts)


def test_every_secret_of_the_settings_is_mounted_and_none_is_made(resources: list[dict[str, Any]]) -> None:
    spec = pod(resources)["spec"]
    volumes = {each["name"]: each for each in spec["volumes"]}
    mounted = {
        f"{mount['mountPath']}/{item['path']}"
        for mount in spec["containers"][0]["volumeMounts"]
        for item in volumes.get(mount["name"], {}).get("secret", {}).get("items", [])
    }
    text = one(resources, "ConfigMap")["data"]["server.properties"]
    assert set(re.findall(rf"{SECRETS}\S+", text)) == mounted
    assert not of_kind(resources, "Secret")
    assert not re.search(r"password=|secret.key=(?!file:)", text)


def test_the_pod_may_do_nothing_but_serve(resources: list[dict[str, Any]]) -> None:
    spec = pod(resources)["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_ports_and_labels_lead_to_the_pods(resources: list[dict[str, Any]]) -> None:
    template = pod(resources)
    labels = template["metadata"]["labels"].items()
    ports = {each["name"]: each["containerPort"] for each in template["spec"]["containers"][0]["ports"]}
    services = of_kind(resources, "Service")
    for service in services:
        assert service["spec"]["selector"].items() <= labels
        assert {each["targetPort"] for each in service["spec"]["ports"]} <= ports.keys()
        assert all(ports[each["targetPort"]] == each["port"] for each in service["spec"]["ports"])
    assert one(resources, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= labels
    policy = one(resources, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == ports.keys()
    for monitor in of_kind(resources, "ServiceMonitor"):
        assert any(
            monitor["spec"]["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
            for each in services
        )


def test_the_alerts_of_the_operator_are_those_of_prometheus_about_the_same_job(charts: Charts) -> None:
    rendered = charts.render(MATRIX["monitored"])
    rule = one(rendered, "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((ROOT / "ops/prometheus/alerts.yml").read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    (nodes,) = (each for each in of_kind(rendered, "Service") if each["metadata"]["name"].endswith("-nodes"))
    job = nodes["metadata"]["labels"][one(rendered, "ServiceMonitor")["spec"]["jobLabel"]]
    assert f'up{{job="{job}"}}' in str(rule["spec"])


def test_alerts_lead_to_the_manual_of_the_values(charts: Charts) -> None:
    monitored = MATRIX["monitored"]
    rule = {**monitored["metrics"]["prometheusRule"], "manual": "https://docs.example.com/kafka-dt/"}
    rendered = charts.render({**monitored, "metrics": {**monitored["metrics"], "prometheusRule": rule}})
    rules = one(rendered, "PrometheusRule")["spec"]["groups"][0]["rules"]
    page = "https://docs.example.com/kafka-dt/how-to/alerts.html"
    assert [each["annotations"]["runbook_url"] for each in rules] == [
        f"{page}#{each['alert'].lower()}" for each in rules
    ]


def test_without_metrics_there_is_nothing_to_monitor(charts: Charts) -> None:
    metrics = {**MATRIX["monitored"]["metrics"], "enabled": False}
    rendered = charts.render({**MATRIX["monitored"], "metrics": metrics})
    assert not [each for each in rendered if each["apiVersion"].startswith("monitoring.coreos.com/")]
    assert {each["name"] for each in pod(rendered)["spec"]["containers"][0]["ports"]} == {"kafka"}


def test_probes_ask_for_the_health_of_the_node_and_without_metrics_for_its_listener(charts: Charts) -> None:
    def asked(name: str) -> list[Any]:
        container = pod(charts.render(MATRIX[name]))["spec"]["containers"][0]
        probes = [container[f"{each}Probe"] for each in ("startup", "liveness", "readiness")]
        return [probe.get("httpGet") or probe["tcpSocket"] for probe in probes]

    live, ready = ({"path": path, "port": "metrics"} for path in ("/livez", "/readyz"))
    assert asked("alone") == [live, live, ready]
    assert asked("without metrics") == [{"port": "kafka"}] * 3


def test_kubernetes_waits_longer_than_a_node_needs_to_stop(resources: list[dict[str, Any]], tmp_path: Path) -> None:
    spec = pod(resources)["spec"]
    _, settings = settings_of(resources, tmp_path)
    needed_ms = settings.drain_delay_ms + settings.drain_timeout_ms + 15_000
    assert spec["terminationGracePeriodSeconds"] >= needed_ms / 1000


def test_a_gateway_has_a_port_or_a_name_for_each_broker(charts: Charts) -> None:
    by_port = charts.render(MATRIX["gateway by port"])
    (clients,) = (each for each in of_kind(by_port, "Service") if each["metadata"]["name"] == "tokens-kafka-dt")
    assert {each["name"]: each["port"] for each in clients["spec"]["ports"]} == {
        "kafka": 9092, "broker-0": 9100, "broker-1": 9101, "broker-2": 9102,
    }  # fmt: skip
    by_name = charts.render(MATRIX["gateway by the Services' names"])
    text = one(by_name, "ConfigMap")["data"]["server.properties"]
    assert "kafka.dt.gateway.broker.host.pattern=tokens-kafka-dt-broker-{id}.streams.svc\n" in text
    names = {each["metadata"]["name"] for each in of_kind(by_name, "Service")}
    assert {f"tokens-kafka-dt-broker-{number}" for number in (1, 2, 3)} < names


def test_settings_of_the_values_win(charts: Charts, tmp_path: Path) -> None:
    _, settings = settings_of(charts.render(MATRIX["alone, every option"]), tmp_path)
    assert (settings.tokens_per_owner_max, settings.workers) == (50, 1)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("alone", {"secrets": TLS}, "secrets.key.name is needed: an existing Secret with the secret key of tokens"),
        ("alone", {"secrets": KEY}, "secrets.tls.name is needed: an existing Secret with the listener's certificate"),
        ("alone", {"zookeeper": {}}, "zookeeper.connect is needed"),
        ("alone", {"listener": {"mechanisms": ["PLAIN"]}}, "secrets.users.name is needed"),
        ("gateway by port", {"gateway": {}}, "gateway.bootstrapServers is needed"),
        ("gateway by port", {"secrets": KEY}, "secrets.upstream.name is needed"),
        ("alone", {"mode": "cluster"}, "mode"),
        ("alone", {"replica": 3}, "replica"),
        ("alone", {"listener": {"port": 70000}}, "port"),
        ("alone", {"settings": {"a": {"b": "c"}}}, "settings"),
    ],
)
def test_values_that_cannot_be_used_are_refused_by_name(
    charts: Charts, name: str, change: Mapping[str, object], said: str
) -> None:
    with pytest.raises(ChartRefused, match=re.escape(said)):
        charts.render({**MATRIX[name], **change})
