"""Kerberos with a real MIT KDC: unmodified clients log in to kafka-dt with a keytab or a ticket, and get a token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka.admin
import kafka
import pytest

from kafka_dt.jaas import LoginModule
from tests.interop.kdc import JAAS, MODULE, REALM, SERVICE, Kdc, accepting
from tests.support.java.properties import SCRAM_MECHANISMS, ClientConfig, kerberos, token, write_properties
from tests.support.java.reference_client import JavaClientError, ReferenceClient
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.process import ProcessFailed
from tests.support.processes.waiting import again_if_lost

OwnServer = Callable[..., KafkaDt]


def kerberos_properties(zookeeper: str, keytab: Path, principal: str = SERVICE) -> dict[str, object]:
    """The settings of a server that takes Kerberos and tokens."""
    others = {key: value for key, value in server_properties(zookeeper).items() if not key.startswith("listener.name.")}
    return (
        others
        | accepting(keytab, principal)
        | {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "GSSAPI,SCRAM-SHA-256,SCRAM-SHA-512"}
    )


@pytest.fixture(scope="module")
def service_keytab(kdc: Kdc) -> Path:
    return kdc.keytab(SERVICE)


@pytest.fixture(scope="module")
def kerberos_server(
    kdc: Kdc, service_keytab: Path, zookeeper_connect: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaDt]:
    properties = kerberos_properties(zookeeper_connect, service_keytab)
    with KafkaDt(tmp_path_factory.mktemp("kerberos"), properties, environment=kdc.environment) as running:
        yield running


@pytest.fixture(scope="module")
def keytab(kdc: Kdc) -> Path:
    """The keys of several clients."""
    return kdc.keytab("alice", "svc-billing", "Bob/admin", "carol/web")


@pytest.fixture
def own_server(kdc: Kdc, service_keytab: Path, zookeeper_connect: str, tmp_path: Path) -> OwnServer:
    """Makes a server for one test, with settings changed."""

    def make(*, keytab: Path = service_keytab, principal: str = SERVICE, **changes: object) -> KafkaDt:
        properties = kerberos_properties(zookeeper_connect, keytab, principal) | changes
        return KafkaDt(tmp_path, properties, environment=kdc.environment)

    return make


@pytest.fixture
def client(java_client: ReferenceClient, kdc: Kdc) -> ReferenceClient:
    java_client.set_property("java.security.krb5.conf", str(kdc.krb5_conf))
    return java_client


@pytest.fixture
def alice(keytab: Path) -> ClientConfig:
    return kerberos(f"alice@{REALM}", keytab)


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_a_keytab_gets_a_token_that_logs_in_where_there_is_no_keytab(
    client: ReferenceClient, kerberos_server: KafkaDt, alice: ClientConfig, mechanism: str
) -> None:
    with client.open(kerberos_server.sasl, alice) as session:
        created = session.create()
        cluster = session.cluster()
        assert created in session.describe(["User:alice"])
    assert (created.owner, created.requester) == ("User:alice", "User:alice")
    with client.open(kerberos_server.sasl, token(created.login, mechanism)) as holder:
        assert holder.cluster() == cluster


@pytest.mark.parametrize(
    ("name", "user"), [("svc-billing", "billing"), ("Bob/admin", "bob.admin"), ("carol/web", "carol")]
)
def test_rules_make_principals_of_kerberos_names(
    client: ReferenceClient, kerberos_server: KafkaDt, keytab: Path, name: str, user: str
) -> None:
    with client.open(kerberos_server.sasl, kerberos(f"{name}@{REALM}", keytab)) as session:
        assert session.create().owner == f"User:{user}"


def test_a_name_that_no_rule_fits_is_refused(
    client: ReferenceClient, own_server: OwnServer, alice: ClientConfig
) -> None:
    rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[2:$1]"}
    with (
        own_server(**rules) as server,
        client.open(server.sasl, alice) as session,
        pytest.raises(JavaClientError, match="invalid credentials with SASL mechanism GSSAPI") as refused,
    ):
        session.topics()
    assert refused.value.kind == "SaslAuthenticationException"
    assert "no rule of sasl.kerberos.principal.to.local.rules" in server.process.output()


def test_logins_by_kerberos_are_audit_events(
    client: ReferenceClient, own_server: OwnServer, keytab: Path, tmp_path: Path
) -> None:
    folder = AuditFolder(tmp_path / "audit")
    rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]"}
    with own_server(**rules, **folder.properties()) as server:
        with client.open(server.sasl, kerberos(f"alice@{REALM}", keytab)) as session:
            session.cluster()
        with (
            client.open(server.sasl, kerberos(f"carol/web@{REALM}", keytab)) as session,
            pytest.raises(JavaClientError),
        ):
            session.cluster()
    accepted = folder.events(type="login", outcome="ok")
    assert accepted
    for event in accepted:
        assert (event["mechanism"], event["principal"], event["by_token"]) == ("GSSAPI", "User:alice", False)
        assert event["client_software"] == "apache-kafka-java"
    refused = folder.events(type="login", outcome="refused")
    assert {(event["reason"], event["principal"]) for event in refused} == {("not_allowed", f"User:carol/web@{REALM}")}


def test_a_new_key_of_the_service_counts_as_soon_as_it_is_in_the_keytab(
    client: ReferenceClient, own_server: OwnServer, kdc: Kdc, keytab: Path
) -> None:
    service = f"service-{uuid.uuid4()}"
    principal = f"{service}/localhost"
    keys = kdc.keytab(principal)
    login = kerberos(f"alice@{REALM}", keytab, service=service)
    with own_server(keytab=keys, principal=principal, **{"sasl.kerberos.service.name": service}) as server:
        kdc.change_key(principal)
        with (
            client.open(server.sasl, login) as session,
            pytest.raises(JavaClientError, match="invalid credentials with SASL mechanism GSSAPI"),
        ):
            session.topics()
        kdc.add_key(principal, keys)
        with client.open(server.sasl, login) as session:
            assert session.topics() == []


def test_a_java_client_logs_in_by_kerberos_again_before_its_session_ends(
    client: ReferenceClient, own_server: OwnServer, alice: ClientConfig
) -> None:
    session_ms = 1500
    lifetime = {"listener.name.sasl_plaintext.gssapi.connections.max.reauth.ms": session_ms}
    with own_server(**lifetime) as impatient:

        def ask_beyond_a_session() -> None:
            # Without retries, a connection that the server closed at the end of its session would be an error here.
            with client.open(impatient.sasl, alice | {"retries": "0"}) as session:
                session.goes_on_for(3 * session_ms / 1000)

        again_if_lost(ask_beyond_a_session, lost=(JavaClientError,))


async def test_aiokafka_logs_in_with_a_ticket(
    kdc: Kdc, keytab: Path, kerberos_server: KafkaDt, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kdc.ticket("alice", keytab).items():
        monkeypatch.setenv(name, value)
    admin = aiokafka.admin.AIOKafkaAdminClient(
        bootstrap_servers=kerberos_server.sasl,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_domain_name="localhost",
    )
    await admin.start()
    try:
        assert await admin.list_topics() == []
    finally:
        await admin.close()


def test_kafka_python_logs_in_with_a_ticket(
    kdc: Kdc, keytab: Path, kerberos_server: KafkaDt, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kdc.ticket("alice", keytab).items():
        monkeypatch.setenv(name, value)
    admin = kafka.KafkaAdminClient(
        bootstrap_servers=kerberos_server.sasl,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_domain_name="localhost",
    )
    try:
        assert admin.list_topics() == []
    finally:
        admin.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keytab": "/nowhere.keytab"}, rf"{JAAS}: no key of {SERVICE} in /nowhere.keytab: .*"),
        ({"principal": "kafka/elsewhere"}, rf"{JAAS}: no key of kafka/elsewhere in .*"),
        (
            {"sasl.kerberos.principal.to.local.rules": "ALL"},
            r"sasl\.kerberos\.principal\.to\.local\.rules: 'ALL' is .*",
        ),
    ],
)
def test_a_server_that_cannot_use_kerberos_does_not_start(
    own_server: OwnServer, change: dict[str, str], message: str
) -> None:
    server = own_server(**change)
    with pytest.raises(ProcessFailed, match=message):
        server.start()
    assert server.process.returncode == 1


def python_login(server: KafkaDt, **options: str) -> dict[str, str]:
    """Settings of our own client; the server's Kerberos name has the host by which the client connects."""
    port = server.sasl.rpartition(":")[2]
    return {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": LoginModule(MODULE, options).line,
    }


def asked(kdc: Kdc, folder: Path, properties: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own: MIT Kerberos reads its configuration once."""
    file = write_properties(folder / "client.properties", properties)
    program = [str(Path(sys.executable).with_name("kafka-dt")), *command, "--command-config", str(file)]
    environment = {**os.environ, **kdc.environment}
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_kafka_dts_own_commands_log_in_with_a_keytab_or_a_ticket(
    kdc: Kdc, kerberos_server: KafkaDt, keytab: Path, tmp_path: Path
) -> None:
    by_keytab = python_login(kerberos_server, useKeyTab="true", keyTab=str(keytab), principal=f"alice@{REALM}")
    made = asked(kdc, tmp_path, by_keytab, "token", "create", "--output", "json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["owner"] == "User:alice"
    kdc.ticket("svc-billing", keytab)
    by_ticket = python_login(kerberos_server, useTicketCache="true", ticketCache=f"{keytab}.ccache")
    listed = asked(kdc, tmp_path, by_ticket, "token", "create", "--output", "json")
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout)["owner"] == "User:billing"


@pytest.mark.parametrize(
    "changes",
    [
        {"sasl.kerberos.service.name": "other"},
        {"sasl.jaas.config": LoginModule(MODULE, {"useKeyTab": "true", "keyTab": "/nowhere", "principal": "x"}).line},
    ],
    ids=["another service", "no keytab"],
)
def test_a_login_of_a_command_that_fails_is_one_line_with_advice(
    kdc: Kdc, kerberos_server: KafkaDt, keytab: Path, tmp_path: Path, changes: dict[str, str]
) -> None:
    login = python_login(kerberos_server, useKeyTab="true", keyTab=str(keytab), principal=f"alice@{REALM}")
    failed = asked(kdc, tmp_path, login | changes, "token", "list")
    assert failed.returncode == 1
    assert "with GSSAPI failed" in failed.stderr
    assert "sasl.kerberos.service.name" in failed.stderr
    assert failed.stderr.count("\n") == 1
