"""`kafka-dt check` on settings alone: what it refuses, and what it calls dangerous."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_dt.audit.chain import START, chained
from kafka_dt.cli import main
from kafka_dt.cli.check.dangers import dangers
from kafka_dt.cli.check.secret_files import open_files
from kafka_dt.cli.check.surroundings import disagreements
from kafka_dt.config import from_properties, given_properties
from tests.support.identity.tls_material import authority, leaf
from tests.support.java.properties import write_properties

NOW_MS = 1_800_000_000_000
KEY = "k" * 32
SAFE = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "zookeeper.connect": "127.0.0.1:1",
    "delegation.token.secret.key": KEY,
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
}


def check(folder: Path, properties: dict[str, str], *arguments: str) -> Result:
    path = write_properties(folder / "server.properties", properties)
    return CliRunner().invoke(main, ["check", "--config", str(path), *arguments])


def refused(folder: Path, properties: dict[str, str]) -> dict[str, str]:
    done = check(folder, properties, "--output", "json")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: a node does not start with these settings")
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["ok"], document["warnings"]) == (False, [])
    return {finding["setting"]: finding["problem"] for finding in document["refused"]}


def warned(properties: dict[str, str]) -> list[tuple[str, str]]:
    return [(each.setting, each.problem) for each in dangers(from_properties({**SAFE, **properties}), NOW_MS)]


def test_every_key_that_cannot_be_used_is_told_at_once(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        {**SAFE, "kafka.dt.wrokers": "2", "socket.request.max.bytes": "many", "delegation.token.max.lifetime.ms": "0"},
    )
    assert set(found) == {"kafka.dt.wrokers", "socket.request.max.bytes", "delegation.token.max.lifetime.ms"}
    assert found["kafka.dt.wrokers"] == "there is no such setting; did you mean kafka.dt.workers?"


@pytest.mark.parametrize("broken", [{"kafka.dt.wrokers": "2"}, {"zookeeper.connect": ""}], ids=["a key", "a check"])
def test_a_key_that_there_is_not_is_told_beside_what_is_refused(tmp_path: Path, broken: dict[str, str]) -> None:
    done = check(tmp_path, {**SAFE, "zookeper.connect": "zk1:2181", "supr.users": "User:a", **broken})
    assert done.exit_code == 1
    first, *warned, _ = done.output.splitlines()
    assert first.startswith("refused  ")
    assert warned == [
        "warning  supr.users: neither a broker nor kafka-dt has such a setting; did you mean super.users?",
        "warning  zookeper.connect: neither a broker nor kafka-dt has such a setting; did you mean zookeeper.connect?",
    ]


def test_what_does_not_fit_together_is_told_for_each_part(tmp_path: Path) -> None:
    properties = {
        **SAFE,
        "listeners": "SSL://:9093,SASL_PLAINTEXT://:9092",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "super.users": "alice",
        "zookeeper.connect": "",
    }
    found = refused(tmp_path, properties)
    assert {"super.users", "zookeeper.connect"} < set(found)
    assert any(setting.startswith("ssl.keystore") for setting in found)


def test_listeners_that_cannot_be_made_hide_nothing_else(tmp_path: Path) -> None:
    properties = {**SAFE, "sasl.enabled.mechanisms": "PLAIN", "super.users": "alice", "kafka.dt.audit.mode": "strict"}
    assert set(refused(tmp_path, properties)) == {
        "listener.name.sasl_plaintext.plain.sasl.jaas.config",
        "super.users",
        "kafka.dt.audit.mode",
    }


def test_the_file_of_a_kafka_4_broker_is_refused_with_the_way_out(tmp_path: Path) -> None:
    found = refused(tmp_path, {"process.roles": "broker,controller", "node.id": "1", "listeners": "PLAINTEXT://:9092"})
    assert list(found) == ["zookeeper.connect"]
    assert "kafka.dt.token.store=upstream" in found["zookeeper.connect"]


def test_a_mechanism_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    properties = {**SAFE, "sasl.enabled.mechanisms": "OAUTHBEARER"}
    assert any("oauthbearer" in setting for setting in refused(tmp_path, properties))


def test_a_zookeeper_that_is_not_reached_is_a_warning_and_no_promise_is_made(tmp_path: Path) -> None:
    quick = {**SAFE, "zookeeper.connection.timeout.ms": "300"}
    done = check(tmp_path, quick)
    assert done.exit_code == 0
    assert "warning  zookeeper.connect: cannot connect to ZooKeeper" in done.stdout
    assert done.stdout.endswith("ok       the settings are accepted; ZooKeeper could not be asked (1 warning)\n")
    assert KEY not in done.output
    document = json.loads(check(tmp_path, quick, "--output", "json").stdout)
    assert (document["ok"], document["not_reached"]) == (True, ["zookeeper.connect"])


def test_characters_that_could_steer_a_terminal_are_escaped(tmp_path: Path) -> None:
    done = check(tmp_path, {**SAFE, "super.users": "\x1b[2Jalice", "kafka.dt.\x1b": "1"})
    assert done.exit_code == 1
    assert "\x1b" not in done.output


def test_safe_settings_have_no_warning() -> None:
    assert warned({}) == []


@pytest.mark.parametrize(
    ("properties", "setting", "words"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, "listeners", "PLAINTEXT is open"),
        (
            {"listeners": "SASL_PLAINTEXT://:9092", "sasl.enabled.mechanisms": "PLAIN"},
            "listeners",
            "passwords by PLAIN",
        ),
        ({"authorizer.class.name": ""}, "authorizer.class.name", "every user may create tokens"),
        ({"allow.everyone.if.no.acl.found": "true"}, "allow.everyone.if.no.acl.found", "set it to false"),
        ({"delegation.token.secret.key": ""}, "delegation.token.secret.key", "every request about tokens is refused"),
        (
            {"delegation.token.secret.key": "", "kafka.dt.secret.keys.previous": "o" * 32},
            "kafka.dt.secret.keys.previous",
            "no effect without delegation.token.secret.key",
        ),
        ({"delegation.token.secret.key": "short"}, "delegation.token.secret.key", "fewer than 32 characters"),
        ({"kafka.dt.secret.keys.previous": "short"}, "kafka.dt.secret.keys.previous", "fewer than 32 characters"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256,DIGEST-MD5"}, "sasl.enabled.mechanisms", "historic"),
        ({"zookeeper.ssl.crl.enable": "true"}, "zookeeper.ssl.crl.enable", "does not support this security setting"),
        (
            {
                "kafka.dt.token.store": "upstream",
                "zookeeper.connect": "",
                "delegation.token.max.lifetime.ms": "3600000",
            },
            "delegation.token.max.lifetime.ms",
            "the cluster behind the gateway has all tokens",
        ),
        ({"super.userz": "User:a"}, "super.userz", "did you mean super.users?"),
        ({"super.users": "User:a, User:b;User:c"}, "super.users", "'User:a, User:b' is one user"),
    ],
)
def test_a_danger_is_told_with_its_setting(properties: dict[str, str], setting: str, words: str) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="x";'
    if "PLAIN" in properties.get("sasl.enabled.mechanisms", "").split(","):
        properties = {**properties, "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas}
    found = warned(properties)
    assert [each for each, problem in found if words in problem] == [setting], found


def test_a_super_user_may_have_the_name_of_a_certificate() -> None:
    assert warned({"super.users": "User:CN=admin,OU=ops,O=example;User:b"}) == []


def test_a_setting_that_a_broker_reads_otherwise_is_told(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    properties = {**SAFE, "super.users": "User:Zo\u00eb", "zookeeper.connection.timeout.ms": "300"}
    lines = [f"{key}={text}" for key, text in properties.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    done = CliRunner().invoke(main, ["check", "--config", str(path)])
    assert "warning  super.users: a broker reads its value otherwise, as ISO-8859-1; write" in done.output
    path.write_text("\n".join(lines).replace(KEY, f"{KEY}\u00e9"), encoding="utf-8")
    done = CliRunner().invoke(main, ["check", "--config", str(path)])
    assert done.output.startswith("refused  delegation.token.secret.key: it has characters that are not ASCII")


@pytest.fixture
def reached_by_all() -> Iterator[Path]:
    """A folder that every user of the machine can enter, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def opened(config: Path, properties: dict[str, str], *overrides: str) -> list[tuple[str, str]]:
    given = given_properties(write_properties(config, properties), overrides)
    values = {
        key: text.replace("${env:STORE}", str(config.parent / "secret")) for key, text in given.properties.items()
    }
    return [(each.setting, each.problem) for each in open_files(config, given, values)]


def told(file: Path) -> str:
    return f"every user of this machine can open {file}; chmod o= {file}"


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("delegation.token.secret.key", "file:{file}"),
        ("kafka.dt.secret.keys.previous", "file:{file}"),
        ("delegation.token.master.key", "file:{file}"),
        ("listener.name.sasl_ssl.plain.sasl.jaas.config", "file:{file}"),
        ("listener.name.sasl_ssl.plain.sasl.jaas.config", 'o.Plain required user_a="${{files:{file}:a}}";'),
        ("listener.name.sasl_ssl.gssapi.sasl.jaas.config", 'c.Krb5LoginModule required keyTab="{file}";'),
        ("listener.name.sasl_ssl.gssapi.sasl.jaas.config", "c.Krb5LoginModule required keyTab=FILE:{file} x=y;"),
        ("listener.name.sasl_ssl.ssl.keystore.location", "{file}"),
        ("ssl.keystore.location", "${{env:STORE}}"),
        ("kafka.dt.gateway.upstream.ssl.keystore.location", "{file}"),
        ("kafka.dt.gateway.upstream.identity.file", "{file}"),
        ("zookeeper.ssl.keystore.password", "${{files:{file}:password}}"),
        ("zookeeper.ssl.keystore.password", "${{folder:{folder}:secret}}"),
    ],
)
def test_a_file_with_a_secret_that_every_user_can_open_is_told(reached_by_all: Path, setting: str, text: str) -> None:
    file, config = reached_by_all / "secret", reached_by_all / "server.properties"
    file.touch(0o644)
    given = {"config.providers": "files,folder,env", setting: text.format(file=file, folder=reached_by_all)}
    assert opened(config, given) == [(setting, told(file))]
    file.chmod(0o640)
    assert opened(config, given) == []


PLAIN_LOGIN = "listener.name.sasl_ssl.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("ssl.key.password", "x"),
        ("ssl.key.password", "ab${x:y}cd"),
        (PLAIN_LOGIN, 'o.a.k.PlainLoginModule required user_alice="x";'),
        (PLAIN_LOGIN, 'o.Plain required user_alice="literal" user_admin="${env:ADMIN}";'),
    ],
)
def test_settings_that_every_user_can_open_are_told_once_if_they_hold_secrets(
    reached_by_all: Path, setting: str, text: str
) -> None:
    config = reached_by_all / "server.properties"
    config.touch(0o644)
    without = {
        "config.providers": "env",
        "delegation.token.secret.key": "env:KEY",
        "ssl.truststore.password": "changeit",
        "ssl.keystore.password": "${env:PASSWORD}",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "o.a.k.ScramLoginModule required;",
        "listener.name.b.plain.sasl.jaas.config": 'o.Plain required user_admin="${env:ADMIN}";',
    }
    assert opened(config, without, "ssl.key.password=x") == [], "the secret is not in the file"
    inside = {**without, setting: text, "zookeeper.ssl.keystore.password": "secret"}
    assert opened(config, inside) == [(setting, told(config))]
    assert opened(config, inside, f"{setting}=env:HOME") == [(setting, told(config))], (
        "it stands in the file all the same"
    )


def test_check_and_serve_tell_of_settings_that_every_user_can_open(reached_by_all: Path) -> None:
    short = {"kafka.dt.secret.keys.previous": "short"}
    properties = {**SAFE, **short, "zookeeper.connection.timeout.ms": "300", "kafka.dt.workers": "1"}
    config = write_properties(reached_by_all / "server.properties", properties)
    config.chmod(0o644)
    problem = f"delegation.token.secret.key: {told(config)}"
    assert f"warning  {problem}\n" in CliRunner().invoke(main, ["check", "--config", str(config)]).stdout
    command = [sys.executable, "-c", "from kafka_dt.cli import main; main()", "serve", "--config", str(config)]
    served = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert served.returncode == 1, "there is no ZooKeeper"
    assert f"WARNING [supervisor] {problem}\n" in served.stderr
    assert "WARNING [supervisor] kafka.dt.secret.keys.previous: a key has fewer than 32 characters" in served.stderr


def test_the_settings_are_read_once(tmp_path: Path) -> None:
    """They may come through a pipe."""
    pipe = tmp_path / "settings"
    os.mkfifo(pipe)
    text = "".join(f"{key}={value}\n" for key, value in {**SAFE, "zookeeper.connection.timeout.ms": "300"}.items())
    with ThreadPoolExecutor(1) as writer:
        writer.submit(pipe.write_text, text)
        command = [sys.executable, "-c", "from kafka_dt.cli import main; main()", "check", "--config", str(pipe)]
        assert subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=False).returncode == 0


def test_the_command_makes_no_folder_of_a_node(tmp_path: Path) -> None:
    """Made by root, the folders would be in the way of the node's own user."""
    properties = {
        **SAFE,
        "zookeeper.connection.timeout.ms": "300",
        "kafka.dt.audit.log.dir": str(tmp_path / "log" / "audit"),
        "kafka.dt.audit.mode": "strict",
        "kafka.dt.state.dir": str(tmp_path / "lib" / "state"),
    }
    done = check(tmp_path, properties)
    assert (done.exit_code, done.stdout.count("warning  ")) == (0, 1), done.output
    assert [each.name for each in tmp_path.iterdir()] == ["server.properties"]


def test_folders_that_a_node_could_not_make_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keys = ("kafka.dt.audit.log.dir", "kafka.dt.state.dir")
    found = refused(tmp_path, SAFE | dict.fromkeys(keys, str(tmp_path / "file" / "below")))
    assert found == dict.fromkeys(keys, f"{tmp_path / 'file'} is not a directory")


def test_a_listener_of_this_machine_alone_is_no_danger() -> None:
    assert warned({"listeners": "PLAINTEXT://localhost:9092"}) == []


@pytest.mark.parametrize(
    ("prefix", "whose", "properties"),
    [
        ("", "SASL_SSL", {"listeners": "SASL_SSL://:9093"}),
        ("kafka.dt.metrics.", "the metrics listener", {"kafka.dt.metrics.listener": "https://127.0.0.1:9404"}),
        (
            "kafka.dt.gateway.upstream.",
            "the gateway at the cluster",
            {
                "kafka.dt.gateway.upstream.bootstrap.servers": "kafka1:9093",
                "kafka.dt.gateway.upstream.security.protocol": "SSL",
            },
        ),
    ],
)
def test_a_certificate_is_told_of_a_month_before_its_end(
    tmp_path: Path, prefix: str, whose: str, properties: dict[str, str]
) -> None:
    issued = leaf("node", authority("authority"))
    store = tmp_path / "node.pem"
    store.write_text(issued.key_pem() + issued.certificate_pem)
    key_store = {f"{prefix}ssl.keystore.type": "PEM", f"{prefix}ssl.keystore.location": str(store)}
    loaded = from_properties({**SAFE, **properties, **key_store})
    end_ms = int(issued.certificate.not_valid_after_utc.timestamp() * 1000)
    day_ms = 86_400_000
    assert list(dangers(loaded, end_ms - 31 * day_ms)) == []
    (soon,) = dangers(loaded, end_ms - 29 * day_ms)
    assert soon.setting == f"{prefix}ssl.keystore.location"
    assert f"the certificate of {whose} ends soon" in soon.problem
    (ended,) = dangers(loaded, end_ms + day_ms)
    assert "has ended" in ended.problem


@pytest.mark.parametrize("asked", ["required", "requested", "none"])
def test_client_certificates_of_any_authority_are_told(tmp_path: Path, asked: str) -> None:
    ours = authority("authority")
    issued = leaf("node", ours)
    (tmp_path / "node.pem").write_text(issued.key_pem() + issued.certificate_pem)
    (tmp_path / "trust.pem").write_text(ours.certificate_pem)
    prefix = "listener.name.ssl.ssl."
    properties = {
        "listeners": "SSL://127.0.0.1:9093",
        f"{prefix}client.auth": asked,
        f"{prefix}keystore.location": str(tmp_path / "node.pem"),
    }
    found = [(key, problem) for key, problem in warned(properties) if "any authority" in problem]
    assert [key for key, _ in found] == [f"{prefix}client.auth"][asked == "none" :]
    trust = {f"{prefix}truststore.location": str(tmp_path / "trust.pem")}
    assert not [problem for _, problem in warned(properties | trust) if "any authority" in problem]


def strict_at(folder: Path) -> list[tuple[str, str]]:
    return warned({"kafka.dt.audit.mode": "strict", "kafka.dt.audit.log.dir": str(folder)})


def test_strict_audit_in_a_folder_with_plain_files_is_told(tmp_path: Path) -> None:
    assert strict_at(tmp_path) == []
    (tmp_path / "notes.txt").write_text("no audit file\n")
    (tmp_path / "audit-kdt1-0-20261126T000000Z-0.jsonl").write_bytes(chained([b"{}\n", b"{}\n"], START))
    (tmp_path / "audit-kdt1-0-20261126T010000Z-0.jsonl.open").write_bytes(bytes(100))
    assert strict_at(tmp_path) == []
    (tmp_path / "audit-kdt2-0-20261126T000000Z-0.jsonl").write_bytes(b"{}\n{}\n")
    (tmp_path / "audit-kdt2-0-20261126T010000Z-0.jsonl.open").write_bytes(b"{}\n")
    ((setting, problem),) = strict_at(tmp_path)
    assert setting == "kafka.dt.audit.log.dir"
    assert f"{tmp_path} has 2 files of a node that was not strict (audit-kdt2-0-20261126T000000Z-0.jsonl)" in problem
    assert "move its files away" in problem
    assert warned({"kafka.dt.audit.log.dir": str(tmp_path)}) == [], "a node that is not strict has no chain"
    (tmp_path / "audit-kdt3-0-20261126T000000Z-0.jsonl").mkdir()
    assert strict_at(tmp_path) == [("kafka.dt.audit.log.dir", "its files cannot be read: Is a directory")]


def test_settings_that_a_broker_has_otherwise_are_told() -> None:
    settings = from_properties({**SAFE, "connections.max.reauth.ms": "60000"}).settings
    theirs = {
        "connections.max.reauth.ms": "0",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "delegation.token.max.lifetime.ms": "604800000",
        "log.dirs": "/elsewhere",
    }
    (found,) = disagreements(settings, theirs)
    assert (found.setting, found.problem) == (
        "connections.max.reauth.ms",
        "it is '60000' here and '0' at the brokers",
    )
