import re
from ipaddress import ip_network

import pytest

from kafka_dt.config import (
    ConfigError,
    Endpoint,
    Listener,
    MechanismSettings,
    ProxyProtocol,
    SecurityProtocol,
    from_properties,
    listeners,
)
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt_protocol.sasl import PLAIN

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="";'
SASL = {"listeners": "SASL_PLAINTEXT://localhost:9092", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}


def made(**changes: str) -> tuple[Listener, ...]:
    return listeners(from_properties(SASL | changes).settings, MECHANISMS)


def test_a_listener_has_the_mechanisms_of_the_node() -> None:
    (listener,) = made(**{"sasl.enabled.mechanisms": "SCRAM-SHA-512, SCRAM-SHA-256"})
    assert tuple(listener.mechanisms) == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert listener.security_protocol is SecurityProtocol.SASL_PLAINTEXT


def test_a_listener_name_has_mechanisms_of_its_own() -> None:
    first, second = made(
        **{
            "listeners": "INSIDE://:9092,OUTSIDE://:9093",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "listener.name.outside.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.outside.plain.sasl.jaas.config": JAAS,
        }
    )
    assert first.mechanisms == {}
    assert second.mechanisms == {PLAIN: MechanismSettings({"alice": "secret", "bob": ""})}


def test_listeners_are_written_as_a_broker_takes_them() -> None:
    inside, outside = made(
        **{
            "listeners": "INSIDE://:9092 , OUTSIDE://:9093,",
            "advertised.listeners": "inside://broker.example:9092,outside://:19093,",
            "listener.security.protocol.map": "INSIDE : PLAINTEXT, OUTSIDE: sasl_plaintext ,",
        }
    )
    assert inside.security_protocol is SecurityProtocol.PLAINTEXT
    assert inside.advertised == Endpoint("INSIDE", "broker.example", 9092)
    assert outside.security_protocol is SecurityProtocol.SASL_PLAINTEXT
    assert outside.advertised == Endpoint("OUTSIDE", "", 19093)


def test_an_address_of_ipv4_and_one_of_ipv6_may_have_the_same_port() -> None:
    four, six = made(**TWO | {"listeners": "INSIDE://127.0.0.1:9092,OUTSIDE://[::1]:9092"})
    assert (four.bind.host, six.bind.host) == ("127.0.0.1", "::1")
    for hosts in (("127.0.0.1", "127.0.0.2"), ("[::1]", "[::2]"), ("127.0.0.1", "[::]"), ("127.0.0.1", "localhost")):
        with pytest.raises(ConfigError, match="OUTSIDE and INSIDE have the same port 9092"):
            made(**TWO | {"listeners": "INSIDE://{}:9092,OUTSIDE://{}:9092".format(*hosts)})


def test_the_time_to_log_in_again_can_differ_by_mechanism() -> None:
    (listener,) = made(
        **{
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "connections.max.reauth.ms": "1000",
            "listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms": "2000",
        }
    )
    after = {name: offered.max_reauth_ms for name, offered in listener.mechanisms.items()}
    assert after == {"SCRAM-SHA-256": 1000, "SCRAM-SHA-512": 2000}


# Load balancers

PROXY = "kafka.dt.proxy.protocol"
TWO = {
    "listeners": "INSIDE://:9092,OUTSIDE://:9093",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
}


def test_a_listener_behind_load_balancers_knows_their_networks_and_others_stay_as_they_are() -> None:
    inside, outside = made(
        **TWO,
        **{
            f"listener.name.outside.{PROXY}": "required",
            f"listener.name.outside.{PROXY}.networks": "10.1.0.0/16, fd00:1::/64",
        },
    )
    assert inside.proxy is None
    assert outside.proxy == ProxyProtocol(True, (ip_network("10.1.0.0/16"), ip_network("fd00:1::/64")))


def test_the_networks_of_the_node_hold_for_each_listener_that_has_a_balancer() -> None:
    inside, outside = made(**TWO, **{f"listener.name.outside.{PROXY}": "optional", f"{PROXY}.networks": "10.1.0.0/16"})
    assert inside.proxy is None
    assert outside.proxy == ProxyProtocol(False, (ip_network("10.1.0.0/16"),))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({PROXY: "required"}, f"{PROXY}.networks: is needed for {PROXY}=required (listener SASL_PLAINTEXT)"),
        ({PROXY: "on"}, f"{PROXY}: 'on' is not one of off, optional, required"),
        ({f"{PROXY}.networks": "10.0.0.0/8"}, f"{PROXY}.networks: it sets nothing without {PROXY}"),
        (
            {f"listener.name.sasl_plaintext.{PROXY}.networks": "10.0.0.0/8"},
            f"{PROXY}.networks: it sets nothing for listener SASL_PLAINTEXT without {PROXY}",
        ),
        ({PROXY: "required", f"{PROXY}.networks": "balancer"}, f"{PROXY}.networks: 'balancer' is no network"),
        ({PROXY: "required", f"{PROXY}.networks": "10.1.2.3/16"}, "10.1.2.3/16 has host bits set"),
    ],
)
def test_networks_that_cannot_be_used_are_an_error_that_names_the_key(changes: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(error)):
        made(**changes)


def test_the_line_that_a_broker_wants_for_scram_is_taken() -> None:
    key = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    (listener,) = made(**{key: f"{module} required;"})
    assert tuple(listener.mechanisms) == ("SCRAM-SHA-256",)
    with pytest.raises(ConfigError, match=re.escape(f"{key}: SCRAM-SHA-256 needs {module}, not")):
        made(**{key: JAAS})


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("PLAINTEXT://:9092", Endpoint("PLAINTEXT", "", 9092)),
        ("plaintext://host-1.example:1", Endpoint("PLAINTEXT", "host-1.example", 1)),
        ("PLAINTEXT://[::1]:0", Endpoint("PLAINTEXT", "::1", 0)),
    ],
)
def test_addresses_are_read_as_a_broker_reads_them(text: str, endpoint: Endpoint) -> None:
    (listener,) = made(listeners=text)
    assert listener.bind == endpoint


def test_what_clients_are_told_is_the_advertised_address() -> None:
    (listener,) = made(**{"advertised.listeners": "SASL_PLAINTEXT://kafka.example:9999"})
    assert str(listener.advertised) == "SASL_PLAINTEXT://kafka.example:9999"


def test_a_tls_listener_has_the_settings_of_the_node_and_its_own() -> None:
    inside, outside = made(
        **{
            "listeners": "INSIDE://:9092,OUTSIDE://:9093",
            "listener.security.protocol.map": "INSIDE:SSL,OUTSIDE:SASL_SSL",
            "ssl.keystore.location": "/keys/node.p12",
            "ssl.keystore.password": "secret",
            "ssl.cipher.suites": "A, B",
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:.*/x/,DEFAULT",
            "listener.name.outside.ssl.keystore.location": "/keys/outside.p12",
            "listener.name.outside.ssl.truststore.certificates": "text",
        }
    )
    assert inside.tls is not None
    assert outside.tls is not None
    common = {
        "ssl.keystore.type": "JKS",
        "ssl.keystore.password": "secret",
        "ssl.truststore.type": "JKS",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.protocol": "TLSv1.3",
        "ssl.cipher.suites": "A,B",
    }
    assert inside.tls.settings == common | {"ssl.keystore.location": "/keys/node.p12", "ssl.client.auth": "required"}
    assert outside.tls.settings == common | {
        "ssl.keystore.location": "/keys/outside.p12",
        "ssl.truststore.certificates": "text",
        "ssl.client.auth": "none",
    }
    assert inside.tls.principal_mapping_rules == "RULE:.*/x/,DEFAULT"
    assert inside.tls.key("ssl.keystore.location") == "ssl.keystore.location"
    assert outside.tls.key("ssl.keystore.location") == "listener.name.outside.ssl.keystore.location"
    assert "secret" not in repr(inside)


def test_a_sasl_listener_asks_for_certificates_where_that_is_said_by_its_name() -> None:
    (listener,) = made(**{"listeners": "SASL_SSL://:9093", "listener.name.sasl_ssl.ssl.client.auth": "requested"})
    assert listener.tls is not None
    assert listener.tls.settings["ssl.client.auth"] == "requested"


def test_a_listener_may_limit_the_requests_before_a_login() -> None:
    inside, outside = made(
        **{
            "listeners": "INSIDE://:9092,OUTSIDE://:9093",
            "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "sasl.server.max.receive.size": "2000",
            "listener.name.outside.sasl.server.max.receive.size": "1000",
        }
    )
    assert (inside.sasl_server_max_receive_size, outside.sasl_server_max_receive_size) == (2000, 1000)


def test_a_listener_may_be_closed_and_a_session_without_a_limit_as_in_a_broker() -> None:
    (listener,) = made(
        **{"listener.name.sasl_plaintext.max.connections": "0", "connections.max.reauth.ms": "-1"},
    )
    assert listener.max_connections == 0
    assert [offered.max_reauth_ms for offered in listener.mechanisms.values()] == [-1]


def test_a_plain_listener_has_no_tls() -> None:
    (listener,) = made(**{"ssl.keystore.location": "/keys/node.p12"})
    assert listener.tls is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"listeners": ""}, "listeners: at least one is needed, such as SASL_PLAINTEXT://:9092"),
        ({"listeners": " , "}, "listeners: at least one is needed, such as SASL_PLAINTEXT://:9092"),
        ({"listeners": "9092"}, "listeners: '9092' is not of the form NAME://host:port"),
        ({"listeners": "PLAINTEXT://:70000"}, "listeners: 'PLAINTEXT://:70000' is not of the form NAME://host:port"),
        ({"listeners": "A://:1"}, "listener.security.protocol.map: it says no security protocol for A"),
        (
            {"listeners": "PLAINTEXT://:1,SASL_PLAINTEXT://:1"},
            "listeners: SASL_PLAINTEXT and PLAINTEXT have the same port 1",
        ),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "listeners: the listener name PLAINTEXT is given twice"),
        (
            {"listener.security.protocol.map": "A=B"},
            "listener.security.protocol.map: 'A=B' is not of the form NAME:PROTOCOL, "
            "PROTOCOL one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"advertised.listeners": "OTHER://host:1"},
            "advertised.listeners: OTHER is not among the listeners SASL_PLAINTEXT",
        ),
        (
            {"advertised.listeners": "SASL_PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners: SASL_PLAINTEXT://0.0.0.0:1 is no address that a client can connect to",
        ),
        (
            {"sasl.enabled.mechanisms": "NTLM"},
            f"sasl.enabled.mechanisms: 'NTLM' on listener SASL_PLAINTEXT is not one of {', '.join(MECHANISMS)}",
        ),
        (
            {"sasl.enabled.mechanisms": ""},
            f"sasl.enabled.mechanisms: listener SASL_PLAINTEXT needs at least one of {', '.join(MECHANISMS)}",
        ),
        (
            {
                "sasl.enabled.mechanisms": "DIGEST-MD5",
                "listener.name.sasl_plaintext.digest-md5.sasl.jaas.config": JAAS,
            },
            "listener.name.sasl_plaintext.digest-md5.sasl.jaas.config: DIGEST-MD5 is for tokens alone, it has no users",
        ),
        (
            {"listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: it sets nothing: "
            "listener SASL_PLAINTEXT does not offer PLAIN",
        ),
        (
            {"listener.name.sasl_plaintext.sasl.jaas.config": JAAS},
            "listener.name.sasl_plaintext.sasl.jaas.config: it sets nothing: "
            "write the mechanism before sasl.jaas.config, such as plain.sasl.jaas.config",
        ),
        (
            {"listener.name.sasl_plaintext.ssl.client.auth": "required"},
            "listener.name.sasl_plaintext.ssl.client.auth: it sets nothing: "
            "listener SASL_PLAINTEXT has no use for it by its security protocol and mechanisms",
        ),
        (
            # A broker has it for a listener, not for a mechanism, and would ignore this.
            {"listener.name.sasl_plaintext.scram-sha-256.sasl.server.max.receive.size": "1"},
            "listener.name.sasl_plaintext.scram-sha-256.sasl.server.max.receive.size: it sets nothing: "
            "listener SASL_PLAINTEXT has no use for it by its security protocol and mechanisms",
        ),
        (
            {"listener.name.outside.max.connections": "1"},
            "listener.name.outside.max.connections: it sets nothing: there is no listener OUTSIDE",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS.replace("Plain", "Scram"),
            },
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: "
            "PLAIN needs org.apache.kafka.common.security.plain.PlainLoginModule, "
            "not org.apache.kafka.common.security.plain.ScramLoginModule",
        ),
    ],
)
def test_a_listener_that_cannot_be_is_an_error_that_names_the_key(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        made(**changes)


def test_plain_without_users_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config: is needed for PLAIN; for example: .*user_alice="):
        made(**{"sasl.enabled.mechanisms": "PLAIN"})


def test_a_broken_jaas_line_does_not_show_its_passwords() -> None:
    broken = JAAS.replace(";", "")
    with pytest.raises(ConfigError) as caught:
        made(
            **{
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": broken,
            }
        )
    assert "secret" not in str(caught.value)


def test_passwords_do_not_show_in_a_listeners_repr() -> None:
    (listener,) = made(
        **{
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        }
    )
    assert "secret" not in repr(listener)
