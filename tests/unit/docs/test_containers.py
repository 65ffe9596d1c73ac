"""docker-compose.yml and the image's settings: nothing secret in them, nothing open, and everything named exists."""

from __future__ import annotations

import re
from typing import Any

import yaml  # type: ignore[import-untyped]

from kafka_dt.config import from_properties, listeners
from kafka_dt.identity.mechanisms import MECHANISMS
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.docs.documents import ROOT

TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: Any = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROPERTIES = (ROOT / "docker" / "server.properties").read_text(encoding="utf-8")
SECRET = re.compile(r"passw(or)?d|user_|jaas|secret[-_.]?key|token\.key", re.IGNORECASE)


def test_no_secret_stands_in_the_compose_file() -> None:
    for secret in (SECRET_KEY, *USERS.values()):
        assert secret not in TEXT
    for name, service in SERVICES.items():
        for part in (*service.get("environment", {}).items(), *service.get("command", ())):
            assert not SECRET.search(str(part)), f"{name}: {part}"


def test_what_services_need_is_declared() -> None:
    for service in SERVICES.values():
        for source in (each.partition(":")[0] for each in service.get("volumes", ())):
            assert source in COMPOSE["volumes"] or (ROOT / source).is_dir()
        for needed in service.get("depends_on", {}):
            assert SERVICES[needed].get("profiles") in (None, service.get("profiles"))
        if not service["image"].startswith("${"):
            assert re.search(rf"^FROM .* AS {service['build']['target']}$", DOCKERFILE, re.MULTILINE)


def test_a_server_starts_when_its_secrets_are_made_and_reads_them_only() -> None:
    servers = {name: service for name, service in SERVICES.items() if "serve" in (service.get("command") or ())}
    assert set(servers) == {"kafka-dt", "kafka-dt-beside", "tests-kafka-dt", "gateway-1", "gateway-2"}
    for service in servers.values():
        makers = [name for name, each in service["depends_on"].items() if each["condition"].endswith("_successfully")]
        (volume,) = service["volumes"]
        assert volume.endswith(":/etc/kafka-dt/secrets:ro")
        assert [volume.removesuffix(":ro") in SERVICES[name].get("volumes", ()) for name in makers].count(True) == 1


def test_the_secrets_of_the_cluster_are_the_brokers_alone() -> None:
    (cluster,) = (each for each in SERVICES["kafka-1"]["volumes"] if each.startswith("kraft-cluster:"))
    assert cluster.endswith(":ro")
    readers = {name for name, service in SERVICES.items() if cluster in service.get("volumes", ())}
    assert readers == {"kafka-1", "kafka-2", "kafka-3", "kraft-rights"}


def test_the_servers_image_has_no_rights_and_cannot_write_to_itself() -> None:
    locked = [service for service in SERVICES.values() if service["image"] == "kafka-dt"]
    assert locked
    for service in locked:
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_ports_are_published_to_this_machine_alone() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_image_opens_nothing_without_a_login(tmp_path: Any) -> None:
    for name in ("users.jaas", "token.key"):
        (tmp_path / name).write_text(
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";'
            if name == "users.jaas"
            else "k" * 32
        )
    lines = PROPERTIES.replace("/etc/kafka-dt/secrets", str(tmp_path)).splitlines()
    settings = from_properties(dict(line.split("=", 1) for line in lines if line and line[0] != "#")).settings
    assert all(listener.mechanisms for listener in listeners(settings, MECHANISMS))
    assert not settings.allow_everyone_if_no_acl_found
    assert settings.authorizer_class_name


def test_every_image_and_every_port_can_be_changed_and_the_page_says_how() -> None:
    variables = set(re.findall(r"\$\{(\w+):-", TEXT))
    assert variables >= {"PYTHON_IMAGE", "KAFKA_IMAGE", "KAFKA_39_IMAGE", "PROMETHEUS_IMAGE", "GRAFANA_IMAGE"}
    page = (ROOT / "docs/how-to/containers.md").read_text(encoding="utf-8")
    assert {name for name in variables if f"`{name}`" not in page} == set()


def test_the_brokers_that_stand_beside_a_node_have_its_ensemble_and_its_secrets() -> None:
    for broker, node in (("kafka", "kafka-dt-beside"), ("tests-kafka", "tests-kafka-dt")):
        connect = SERVICES[broker]["command"][1]
        assert f"zookeeper.connect={connect}" in SERVICES[node]["command"]
        assert "delegation.token.metadata.encryption.enable=false" in SERVICES[node]["command"]
        (secrets,) = SERVICES[node]["volumes"]
        assert secrets in SERVICES[broker]["volumes"]


def test_prometheus_scrapes_every_node_that_has_a_port_for_it() -> None:
    nodes = {
        name for name, each in SERVICES.items() if "kafka.dt.metrics.listener=http://:9404" in each.get("command", ())
    }
    (job,) = yaml.safe_load((ROOT / "docker/monitoring/prometheus.yml").read_text())["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert (job["job_name"], set(found["names"]), found["port"]) == ("kafka-dt", nodes, 9404)
    assert nodes == {"kafka-dt", "kafka-dt-beside", "gateway-1", "gateway-2"}


def test_what_the_monitoring_mounts_is_the_rules_and_the_dashboard_of_ops() -> None:
    prometheus = yaml.safe_load((ROOT / "docker/monitoring/prometheus.yml").read_text())
    assert "./ops/prometheus:/etc/alerts:ro" in SERVICES["prometheus"]["volumes"]
    (rules,) = prometheus["rule_files"]
    assert (ROOT / "ops/prometheus" / rules.removeprefix("/etc/alerts/")).is_file()
    grafana = SERVICES["grafana"]
    assert "./ops/grafana:/etc/dashboards:ro" in grafana["volumes"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "ops/grafana" / home.removeprefix("/etc/dashboards/")).is_file()
    provisioned = ROOT / "docker/monitoring/grafana"
    (source,) = yaml.safe_load((provisioned / "datasources/prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    (provider,) = yaml.safe_load((provisioned / "dashboards/kafka-dt.yml").read_text())["providers"]
    assert provider["options"]["path"] == "/etc/dashboards"


def test_grafana_has_no_login_and_so_no_default_password() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
