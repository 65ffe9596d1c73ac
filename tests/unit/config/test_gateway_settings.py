"""The settings of a gateway: what they become, and which contradict each other."""

import re
from pathlib import Path

import pytest

from kafka_dt import client
from kafka_dt.config import (
    ConfigError,
    GatewaySettings,
    UpstreamIdentity,
    from_properties,
    gateway_settings,
    listeners,
    without_effect,
)
from kafka_dt.config.options.client import LOGIN_MECHANISMS, SCRAM_MECHANISMS
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt_protocol.sasl import ScramMechanism

UPSTREAM = "kafka.dt.gateway.upstream."
BROKER = "kafka.dt.gateway.broker."
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
SASL = {"listeners": "SASL_PLAINTEXT://:9092", "sasl.enabled.mechanisms": "SCRAM-SHA-256"} | AUTHORIZER
UPSTREAM_SASL = {
    f"{UPSTREAM}security.protocol": "SASL_PLAINTEXT",
    f"{UPSTREAM}sasl.mechanism": "SCRAM-SHA-512",
    f"{UPSTREAM}sasl.jaas.config": f'{SCRAM} username="gateway" password="secret-of-the-gateway";',
}
GATEWAY = SASL | {f"{UPSTREAM}bootstrap.servers": "k1:9092, k2:9092", f"{BROKER}port.base": "9200"}
TOKENS = GATEWAY | UPSTREAM_SASL | {f"{UPSTREAM}identity": "owner-token"}
NONE = GATEWAY | {f"{UPSTREAM}identity": "none"}


def made(properties: dict[str, str]) -> GatewaySettings | None:
    settings = from_properties(properties).settings
    return gateway_settings(settings, listeners(settings, MECHANISMS))


def gateway(properties: dict[str, str]) -> GatewaySettings:
    result = made(properties)
    assert result is not None
    return result


def test_clients_are_named_to_the_brokers_if_that_is_set_which_is_no_setting_of_a_client() -> None:
    assert not gateway(TOKENS).names_clients
    settings = gateway(TOKENS | {f"{UPSTREAM}proxy.protocol": "v2"})
    assert settings.names_clients
    assert "proxy.protocol" not in settings.client
    with pytest.raises(ConfigError, match=re.escape(f"{UPSTREAM}proxy.protocol: it sets nothing without")):
        made(SASL | {f"{UPSTREAM}proxy.protocol": "v2"})


def test_a_node_without_a_cluster_behind_it_is_no_gateway() -> None:
    assert made(SASL) is None


def test_the_settings_of_a_client_have_their_own_names() -> None:
    settings = gateway(TOKENS | {f"{UPSTREAM}ssl.enabled.protocols": "TLSv1.3"})
    assert settings.client == {
        "bootstrap.servers": "k1:9092,k2:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} username="gateway" password="secret-of-the-gateway";',
        "ssl.truststore.type": "JKS",
        "ssl.keystore.type": "JKS",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.protocol": "TLSv1.3",
        "client.id": "kafka-dt",
        "request.timeout.ms": "30000",
        "socket.connection.setup.timeout.ms": "10000",
    }
    assert settings.identity is UpstreamIdentity.OWNER_TOKEN


def test_the_check_of_a_brokers_name_can_be_switched_off() -> None:
    key = "ssl.endpoint.identification.algorithm"
    assert gateway(TOKENS | {f"{UPSTREAM}{key}": ""}).client[key] == ""


def test_no_secret_shows(tmp_path: Path) -> None:
    (tmp_path / "jaas").write_text(f'{SCRAM} username="gateway" password="hidden-one";')
    settings = gateway(TOKENS | {f"{UPSTREAM}sasl.jaas.config": f"file:{tmp_path}/jaas"})
    assert "hidden-one" in settings.client["sasl.jaas.config"]
    assert "hidden-one" not in repr(settings)


@pytest.mark.parametrize(
    ("own", "said", "used"),
    [
        ("SCRAM-SHA-512", "", "SCRAM-SHA-512"),
        ("PLAIN", "", "SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-256"),
    ],
)
def test_clients_log_in_with_the_gateways_scram_mechanism_unless_another_is_set(own: str, said: str, used: str) -> None:
    changes = {f"{UPSTREAM}sasl.mechanism": own, f"{UPSTREAM}identity.mechanism": said}
    assert gateway(TOKENS | changes).identity_mechanism == used


def test_listeners_can_show_the_brokers_each_in_its_way() -> None:
    settings = from_properties(
        TOKENS
        | {
            "listeners": "SASL_PLAINTEXT://:9092,SASL_SSL://:9093",
            f"{BROKER}port.base": "-1",
            f"listener.name.sasl_plaintext.{BROKER}port.base": "9200",
            f"listener.name.sasl_ssl.{BROKER}host.pattern": "b{id}.kafka.example.com",
        }
    ).settings
    inside, outside = listeners(settings, MECHANISMS)
    assert gateway_settings(settings, (inside, outside)) is not None
    assert (inside.broker_port_base, inside.broker_host_pattern) == (9200, "")
    assert (outside.broker_port_base, outside.broker_host_pattern) == (None, "b{id}.kafka.example.com")


def test_everybody_can_be_mapped_to_a_user() -> None:
    changes = {f"{UPSTREAM}identity": "mapped", f"{UPSTREAM}identity.file": "/etc/users.jaas"}
    assert gateway(TOKENS | changes).identity_file == Path("/etc/users.jaas")


def test_clients_without_a_login_go_where_one_identity_is_everybodys() -> None:
    nobody = {"listeners": "PLAINTEXT://:9092"}
    assert gateway(NONE | nobody).identity is UpstreamIdentity.NONE
    service = GATEWAY | UPSTREAM_SASL | nobody | {f"{UPSTREAM}identity": "service"}
    assert gateway(service).identity is UpstreamIdentity.SERVICE


def test_a_certificate_makes_somebody_of_a_client_and_of_the_gateway() -> None:
    certified = {"listeners": "SSL://:9092", "ssl.client.auth": "required"}
    assert gateway(TOKENS | certified).identity is UpstreamIdentity.OWNER_TOKEN
    service = {
        f"{UPSTREAM}identity": "service",
        f"{UPSTREAM}security.protocol": "SSL",
        f"{UPSTREAM}ssl.keystore.location": "/keys/gateway.pem",
    }
    assert gateway(GATEWAY | service).identity is UpstreamIdentity.SERVICE


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        (
            {f"{UPSTREAM}identity": None},
            f"{UPSTREAM}identity",
            "is needed for a gateway, one of owner-token, relay",
        ),
        ({f"{UPSTREAM}identity": "token"}, f"{UPSTREAM}identity", "is not one of"),
        ({f"{UPSTREAM}security.protocol": "SSL"}, f"{UPSTREAM}security.protocol", "needs SASL_SSL or SASL_PLAINTEXT"),
        (
            {f"{UPSTREAM}security.protocol": "SSL", f"{UPSTREAM}identity": "service"},
            f"{UPSTREAM}security.protocol",
            "SSL gives the gateway no login upstream",
        ),
        (
            {f"{UPSTREAM}identity": "none"},
            f"{UPSTREAM}sasl.jaas.config",
            "identity=service if every client is to use it",
        ),
        (
            {f"{UPSTREAM}sasl.jaas.config": f'{SCRAM} username="t" password="hush" tokenauth="true";'},
            f"{UPSTREAM}sasl.jaas.config",
            "makes no other tokens",
        ),
        ({f"{UPSTREAM}sasl.jaas.config": "hush"}, f"{UPSTREAM}sasl.jaas.config", "not understood"),
        ({f"{UPSTREAM}identity": "mapped"}, f"{UPSTREAM}identity.file", "is needed for"),
        ({f"{UPSTREAM}identity.file": "/x"}, f"{UPSTREAM}identity.file", "is for .*=mapped, not for owner-token"),
        ({"listeners": "PLAINTEXT://:9092"}, f"{UPSTREAM}identity", "listener PLAINTEXT need no login"),
        (
            {"listeners": "SSL://:9092", "ssl.client.auth": "requested"},
            f"{UPSTREAM}identity",
            "SSL with ssl.client.auth=required",
        ),
        ({f"{BROKER}port.base": None}, f"{BROKER}port.base", "or kafka.dt.gateway.broker.host.pattern"),
        ({f"{BROKER}port.base": "0"}, f"{BROKER}port.base", "0 is no port"),
        ({f"{BROKER}port.base": "65536"}, f"{BROKER}port.base", "65536 is no port"),
        ({f"{BROKER}host.pattern": "b{id}.x"}, f"{BROKER}host.pattern", "leave one of them"),
        (
            {f"{BROKER}port.base": None, f"{BROKER}host.pattern": "b{id}.x"},
            f"{BROKER}host.pattern",
            "listener SASL_PLAINTEXT has no TLS",
        ),
        (
            {"listeners": "A://:1,B://:2", "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT"},
            f"{BROKER}port.base",
            r"A and B both have 9200; set listener\.name\.b\.kafka\.dt\.gateway\.broker\.port\.base",
        ),
    ],
)
def test_what_does_not_go_together_is_an_error_of_its_key(
    changes: dict[str, str | None], key: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        made({name: text for name, text in (TOKENS | changes).items() if text is not None})
    assert caught.value.key == key
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("pattern", ["kafka.example.com", "{id}{id}.x", "b{ID}.x", "b{id}.x:9092", "-{id}.x", "b_{id}"])
def test_a_pattern_is_a_host_name_with_an_id_in_it(pattern: str) -> None:
    tls = TOKENS | {"listeners": "SASL_SSL://:9092", f"{BROKER}host.pattern": pattern}
    del tls[f"{BROKER}port.base"]
    with pytest.raises(ConfigError, match=r"is no host name with \{id\} in it once"):
        made(tls)


@pytest.mark.parametrize(
    "key", [f"{UPSTREAM}identity", f"{UPSTREAM}sasl.jaas.config", f"{BROKER}port.base", f"{UPSTREAM}client.id"]
)
def test_a_setting_of_a_gateway_that_is_none_is_an_error(key: str) -> None:
    changed = dict(NONE | UPSTREAM_SASL | {f"{UPSTREAM}client.id": "me"})
    with pytest.raises(ConfigError, match=re.escape(f"{key}: it sets nothing without {UPSTREAM}bootstrap.servers")):
        made(SASL | {key: changed[key]})
    with pytest.raises(ConfigError, match="it sets nothing without"):
        made(SASL | {f"listener.name.sasl_plaintext.{BROKER}port.base": "9200"})


@pytest.mark.parametrize(
    "identity", [{"identity": "owner-token"}, {"identity": "mapped", "identity.file": "/etc/users"}]
)
def test_without_an_authorizer_everybody_could_be_anybody(identity: dict[str, str]) -> None:
    changes = {f"{UPSTREAM}{key}": value for key, value in identity.items()}
    with pytest.raises(ConfigError, match=r"^authorizer\.class\.name: without it every user may create tokens"):
        made(TOKENS | changes | {"authorizer.class.name": ""})


def test_a_node_can_be_told_to_log_in_by_mechanisms_of_the_client() -> None:
    assert set(LOGIN_MECHANISMS) < set(client.MECHANISMS)
    assert tuple(ScramMechanism) == SCRAM_MECHANISMS


RELAY = GATEWAY | UPSTREAM_SASL | {f"{UPSTREAM}identity": "relay"}


def test_relayed_logins_are_bounded_for_each_address() -> None:
    assert gateway(RELAY).identity is UpstreamIdentity.RELAY
    key = f"{UPSTREAM}identity.max.logins.per.ip"
    assert gateway(RELAY | {key: "7"}).logins_per_ip == 7
    assert key.removeprefix(UPSTREAM) not in gateway(RELAY | {key: "7"}).client


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({f"{UPSTREAM}security.protocol": "SSL"}, f"{UPSTREAM}security.protocol"),
        ({"authorizer.class.name": ""}, "authorizer.class.name"),
        (
            {f"{UPSTREAM}sasl.jaas.config": f'{SCRAM} username="id" password="hmac" tokenauth="true";'},
            f"{UPSTREAM}sasl.jaas.config",
        ),
    ],
)
def test_a_gateway_that_relays_needs_what_one_with_owner_tokens_needs(change: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as error:
        gateway(RELAY | change)
    assert error.value.key == key


STORE = {"kafka.dt.token.store": "upstream"}
BOTH = {
    "kafka.dt.token.store": "zookeeper,upstream",
    "zookeeper.connect": "zk:2181",
    "delegation.token.secret.key": "k",
}


def test_settings_of_tokens_and_zookeeper_mean_nothing_where_the_cluster_has_all_tokens() -> None:
    kept = {
        "delegation.token.max.lifetime.sec": "3600",
        "zookeeper.set.acl": "true",
        "kafka.dt.tokens.per.owner.max": "5",
    }
    assert without_effect(from_properties(RELAY | STORE | kept).settings) == [
        "delegation.token.max.lifetime.ms",
        "zookeeper.set.acl",
    ]
    assert without_effect(from_properties(RELAY | STORE).settings) == []
    assert without_effect(from_properties(RELAY | BOTH | kept).settings) == ()


def test_the_cluster_behind_a_gateway_can_be_the_store_of_its_tokens() -> None:
    assert gateway(TOKENS | STORE).serves_its_tokens
    assert gateway(RELAY | STORE).serves_its_tokens
    assert gateway(TOKENS | BOTH).serves_its_tokens
    assert gateway(TOKENS | BOTH).makes_its_tokens
    ready = gateway(TOKENS | BOTH | {"kafka.dt.token.store": "upstream,zookeeper"})
    assert ready.serves_its_tokens
    assert not ready.makes_its_tokens, "the cluster cannot decide who may create a token in ZooKeeper"
    assert not gateway(TOKENS).serves_its_tokens
    assert gateway(TOKENS | STORE | {"kafka.dt.upstream.token.refresh.ms": "100"}).client == gateway(TOKENS).client


@pytest.mark.parametrize(
    ("properties", "key", "reason"),
    [
        (SASL | STORE, f"{UPSTREAM}bootstrap.servers", "is needed for kafka.dt.token.store=upstream"),
        (TOKENS | STORE | {"zookeeper.connect": "zk:2181"}, "zookeeper.connect", "leave one of them out"),
        (TOKENS | STORE | {"delegation.token.secret.key": "k"}, "delegation.token.secret.key", "the cluster makes"),
        (
            TOKENS | STORE | {"allow.everyone.if.no.acl.found": "true"},
            "allow.everyone.if.no.acl.found",
            "every client could create tokens for every other user",
        ),
        (SASL | BOTH, f"{UPSTREAM}bootstrap.servers", "is needed for kafka.dt.token.store=zookeeper,upstream"),
        (TOKENS | BOTH | {"zookeeper.connect": ""}, "zookeeper.connect", "where the tokens are"),
        (
            TOKENS | BOTH | {"delegation.token.secret.key": ""},
            "delegation.token.secret.key",
            "the key that made the tokens",
        ),
        (TOKENS | BOTH | {"allow.everyone.if.no.acl.found": "true"}, "allow.everyone.if.no.acl.found", "every client"),
        (NONE | BOTH, f"{UPSTREAM}identity", "no client may be that user"),
        (NONE | STORE, f"{UPSTREAM}identity", "no client may be that user"),
        (
            TOKENS | STORE | {f"{UPSTREAM}identity": "service"},
            f"{UPSTREAM}identity",
            "no client may be that user",
        ),
        (
            TOKENS
            | STORE
            | {
                f"{UPSTREAM}identity": "mapped",
                f"{UPSTREAM}identity.file": "users.jaas",
                f"{UPSTREAM}sasl.jaas.config": f'{SCRAM} username="i" password="h" tokenauth="true";',
            },
            f"{UPSTREAM}sasl.jaas.config",
            "may not ask for tokens",
        ),
        (TOKENS | {"kafka.dt.upstream.max.staleness.ms": "5000"}, "kafka.dt.upstream.max.staleness.ms", "sets nothing"),
        (SASL | {"kafka.dt.upstream.token.refresh.ms": "300"}, "kafka.dt.upstream.token.refresh.ms", "sets nothing"),
    ],
)
def test_a_store_in_the_cluster_needs_a_gateway_and_nothing_of_zookeeper(
    properties: dict[str, str], key: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as error:
        made(properties)
    assert error.value.key == key
