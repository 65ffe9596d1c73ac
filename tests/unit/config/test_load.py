import re
from pathlib import Path

import pytest

from kafka_dt.config import (
    ConfigError,
    Given,
    Secret,
    Settings,
    every_error,
    from_properties,
    given_properties,
    load,
    options,
)
from kafka_dt.config.load import DEFAULTS, broker_keys, nearest_setting, unknown_keys
from kafka_dt.jaas import PLAIN_LOGIN_MODULE

BROKER = """\
broker.id=7
listeners=SASL_PLAINTEXT://:9092
zookeeper.connect=zk1:2181,zk2:2181/kafka
log.dirs=/var/kafka
num.network.threads=3
delegation.token.master.key=old name
delegation.token.expiry.time.ms=1000
my.plugin.setting=1
"""


def test_a_brokers_own_properties_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(BROKER)
    loaded = load(path)
    assert loaded.settings.broker_id == 7
    assert loaded.settings.listeners == ("SASL_PLAINTEXT://:9092",)
    assert loaded.settings.zookeeper_connect == "zk1:2181,zk2:2181/kafka"
    assert loaded.settings.expiry_time_ms == 1000
    assert loaded.settings.secret_key is not None
    assert loaded.settings.secret_key.value == "old name"


def test_keys_without_meaning_are_told_apart_from_keys_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(BROKER)
    loaded = load(path)
    assert loaded.ignored == ("log.dirs", "num.network.threads")
    assert loaded.unknown == ("my.plugin.setting",)


def test_a_slip_in_a_key_of_a_listener_is_told_like_any_other() -> None:
    slips = (
        "listener.name.sasl_ssl.connections.max.reauth.mss",
        "listener.name.sasl_ssl.plain.sasl.jaas.confg",
        "listener.name.sasl_ssl.ssl.client.auht",
    )
    known = (
        "listener.name.a.b.ssl.client.auth",
        "listener.name.sasl_ssl.max.connections",
        "listener.name.sasl_ssl.num.network.threads",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        "listener.name.sasl_ssl.plain.sasl.login.class",
    )
    assert unknown_keys((*slips, *known)) == slips
    assert [nearest_setting(key) for key in slips] == [
        "connections.max.reauth.ms",
        "sasl.jaas.config",
        "ssl.client.auth",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("zookeeper.ssl.crl.enable", "true"),
        ("zookeeper.ssl.ocsp.enable", " TRUE "),
        ("zookeeper.ssl.protocol", "TLSv1.3"),
        ("zookeeper.ssl.cipher.suites", "TLS_AES_256_GCM_SHA384"),
        ("zookeeper.ssl.enabled.protocols", "TLSv1.3"),
        ("sasl.server.callback.handler.class", "com.example.Ldap"),
        ("listener.name.sasl_ssl.plain.sasl.server.callback.handler.class", "com.example.Ldap"),
        ("principal.builder.class", "com.example.Builder"),
        ("listener.name.internal.principal.builder.class", "com.example.Builder"),
        ("security.providers", "com.example.Provider"),
        ("ssl.engine.factory.class", "com.example.Engines"),
    ],
)
def test_a_key_that_would_protect_something_is_told_apart_from_the_harmless(key: str, value: str) -> None:
    loaded = from_properties({key: value, "log.dirs": "/var/kafka"})
    assert loaded.unprotected == (key,)
    assert loaded.ignored == ("log.dirs",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *DEFAULTS.items(),
        ("zookeeper.ssl.crl.enable", "False"),
        ("principal.builder.class", ""),
        ("listener.name.internal.sasl.login.class", "com.example.Login"),
    ],
)
def test_a_key_that_is_set_to_kafkas_default_protects_nothing(key: str, value: str) -> None:
    assert from_properties({key: value}).unprotected == ()


def test_keys_that_protect_are_keys_of_a_broker() -> None:
    assert set(DEFAULTS) < broker_keys()


def test_an_override_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(BROKER)
    assert load(path, ["broker.id=8"]).settings.broker_id == 8


def test_every_option_of_kafka_has_the_name_of_a_brokers_key() -> None:
    of_the_authorizer = {"super.users", "allow.everyone.if.no.acl.found"}
    strangers = {
        declared.key for _, declared in options() if declared.source == "Kafka" and declared.key not in broker_keys()
    }
    assert strangers == of_the_authorizer


def test_the_drafts_seconds_are_milliseconds_times_a_thousand() -> None:
    settings = from_properties(
        {"delegation.token.max.lifetime.sec": "60", "delegation.token.expiry.time.sec": "5"}
    ).settings
    assert (settings.max_lifetime_ms, settings.expiry_time_ms) == (60_000, 5_000)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"broker.id": "one"}, "broker.id: 'one' is not a whole number"),
        ({"broker.id": "1_000"}, "broker.id: '1_000' is not a whole number"),
        ({"broker.id": "-2"}, "broker.id: -2 is too small, the smallest value is -1"),
        (
            {"kafka.dt.zookeeper.max.staleness.ms": "999"},
            "kafka.dt.zookeeper.max.staleness.ms: 999 is too small, the smallest value is 1000",
        ),
        ({"broker.id": "2147483648"}, "broker.id: 2147483648 is out of range, the largest value is 2147483647"),
        ({"zookeeper.set.acl": "yes"}, "zookeeper.set.acl: 'yes' is neither true nor false"),
        (
            {"kafka.dt.token.hmac.algorithm": "MD5"},
            "kafka.dt.token.hmac.algorithm: 'MD5' is not one of HmacSHA512, HmacSHA256, HmacSHA1",
        ),
        (
            {"authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer"},
            "authorizer.class.name: 'kafka.security.auth.SimpleAclAuthorizer' is not one of an empty value, "
            "kafka.security.authorizer.AclAuthorizer",
        ),
        (
            {"listener.name.SASL.plain.sasl.jaas.config": "x"},
            "listener.name.SASL.plain.sasl.jaas.config: names of listeners and mechanisms are in lower case here: "
            "listener.name.sasl.plain.sasl.jaas.config",
        ),
        (
            {"delegation.token.expiry.time": "1"},
            "delegation.token.expiry.time: there is no such setting; did you mean delegation.token.expiry.time.ms?",
        ),
        (
            {"broker.id": "5", "node.id": "6"},
            "node.id: is given twice, also as broker.id, with another value; keep one of them",
        ),
        (
            {"delegation.token.max.lifetime.sec": "5", "delegation.token.max.lifetime.ms": "6"},
            "delegation.token.max.lifetime.ms: is given twice, also as delegation.token.max.lifetime.sec, with another "
            "value; keep one of them",
        ),
        (
            {"delegation.token.secret.key": "file:/does/not/exist"},
            "delegation.token.secret.key: the secret's file /does/not/exist cannot be read: No such file or directory",
        ),
        (
            {"delegation.token.secret.key": "env:KAFKA_DT_NOT_SET"},
            "delegation.token.secret.key: the environment variable KAFKA_DT_NOT_SET is not set",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error_that_names_its_key(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        from_properties(properties)


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800", r"x\udfff"])
def test_a_value_that_no_file_name_or_password_can_be_is_an_error_that_names_its_key(
    tmp_path: Path, escape: str
) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"delegation.token.secret.key=file:{escape}\n")
    with pytest.raises(ConfigError, match=r"^delegation.token.secret.key: it has a NUL character, or half a surrogate"):
        load(config)
    config.write_text(r"super.users=User:\ud83d\ude00")
    assert load(config).settings.super_users == "User:\N{GRINNING FACE}"


PROVIDERS = {
    "config.providers": "file,env,vault",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.vault.class": "com.example.Vault",
}


def test_values_come_from_the_config_providers_of_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("alice=wonder land\nkey = k\n")
    monkeypatch.setenv("KAFKA_DT_ZOOKEEPER", "zk:2181")
    jaas = "listener.name.sasl_ssl.plain.sasl.jaas.config"
    given = {
        "delegation.token.secret.key": f"${{file:{secrets}:key}}",
        "zookeeper.connect": "${env:KAFKA_DT_ZOOKEEPER}/kafka",
        jaas: f'{PLAIN_LOGIN_MODULE} required user_alice="${{file:{secrets}:alice}}" user_bob="${{b:ob}}";',
        "log.dirs": "${file:/missing:logs}",
        "ssl.cipher.suites": "${other:x}",
    }
    loaded = from_properties(PROVIDERS | given)
    settings = loaded.settings
    assert settings.secret_key == Secret("k")
    assert settings.zookeeper_connect == "zk:2181/kafka"
    assert settings.overrides[jaas] == f'{PLAIN_LOGIN_MODULE} required user_alice="wonder land" user_bob="${{b:ob}}";'
    assert (loaded.ignored, loaded.unprotected, loaded.unknown) == (("log.dirs",), (), ())
    # A worker makes the same settings of the properties, though the files have changed.
    secrets.unlink()
    assert from_properties(loaded.properties).settings == settings


@pytest.mark.parametrize(
    ("key", "variable", "reason"),
    [
        (
            "delegation.token.secret.key",
            "${file:/missing/secrets:key}",
            "${file:/missing/secrets:key}: the file cannot be read: No such file or directory",
        ),
        (
            "ssl.keystore.password",
            "${vault:kafka:keystore}",
            "config.providers.vault.class: kafka-dt does not have 'com.example.Vault'; write the value itself, or for "
            "a secret file:/path or env:NAME",
        ),
        (
            "listener.name.sasl_ssl.plain.sasl.jaas.config",
            "${env:KAFKA_DT_MISSING}",
            "${env:KAFKA_DT_MISSING}: the environment variable is not set; Kafka would leave the variable as it stands",
        ),
    ],
)
def test_a_variable_of_a_config_provider_without_a_value_is_an_error_and_no_secret(
    key: str, variable: str, reason: str
) -> None:
    given = PROVIDERS | {key: variable}
    with pytest.raises(ConfigError) as raised:
        from_properties(given)
    assert str(raised.value) == f"{key}: {reason}"
    assert [str(error) for error in every_error(Given(given))] == [f"{key}: {reason}"]
    # Without providers it is a text like another to a broker, and so are variables of other names.
    from_properties({key: variable})
    from_properties({"config.providers": "other", key: variable})


@pytest.mark.parametrize(
    "key", ["max.connections", "listener.name.sasl_ssl.max.connections", "ssl.client.auth", "ssl.truststore.password"]
)
def test_the_value_of_a_config_provider_is_in_no_error(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("KAFKA_DT_SECRET", "file:wonder")
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "wonder")
    name = "SECRET" if key == "ssl.truststore.password" else "PASSWORD"
    with pytest.raises(ConfigError, match=f"^{key}: the value of its provider ") as raised:
        from_properties(PROVIDERS | {key: f"${{env:KAFKA_DT_{name}}}"})
    assert "wonder" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_acls_in_a_zookeeper_of_their_own_are_an_error() -> None:
    given = {"zookeeper.connect": "zk:2181/kafka", "authorizer.zookeeper.url": "zk:2181/acls"}
    authorizer = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    with pytest.raises(ConfigError, match=r"^authorizer\.zookeeper\.url: kafka-dt reads ACLs in the ZooKeeper of"):
        from_properties(given | authorizer)
    assert from_properties(given).unknown == ()
    from_properties(given | authorizer | {"authorizer.zookeeper.url": " zk:2181/kafka"})
    with pytest.raises(ConfigError, match=r"^authorizer\.zookeeper\.url"):
        from_properties(given | authorizer | {"authorizer.zookeeper.url": "zk:2181,zk2:2181/kafka"})


def test_the_servers_of_one_zookeeper_may_be_written_in_any_order() -> None:
    given = {"zookeeper.connect": "zk1:2181, zk2:2181/kafka", "authorizer.zookeeper.url": "zk2:2181,zk1:2181,/kafka"}
    from_properties(given | {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"})


def test_config_providers_of_keys_that_have_no_meaning_here_are_a_brokers_own() -> None:
    loaded = from_properties(PROVIDERS | {"log.dirs": "${vault:logs}"})
    assert loaded.ignored == ("log.dirs",)
    assert loaded.unknown == ()


def test_an_escape_that_cannot_be_read_is_an_error_without_its_words(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(r"delegation.token.secret.key=pass\uword")
    with pytest.raises(ConfigError, match=r"it has \\u without four hex digits") as raised:
        load(config)
    assert "word" not in str(raised.value)


def test_a_file_that_is_not_utf_8_is_read_as_a_broker_reads_it(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_bytes(b"delegation.token.secret.key=k\xe9y\nsuper.users=User:Zo\xeb\n")
    loaded = load(config)
    assert loaded.settings.secret_key == Secret("k\u00e9y")
    assert loaded.settings.super_users == "User:Zo\u00eb"
    assert loaded.read_otherwise == ()


@pytest.mark.parametrize("key", ["delegation.token.secret.key", "delegation.token.master.key"])
def test_a_secret_key_that_a_broker_reads_otherwise_is_an_error(tmp_path: Path, key: str) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"{key}=k\u00e9y\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"^{key}: .*a broker reads a file as ISO-8859-1.*write .*uXXXX") as raised:
        load(config)
    assert "k\u00e9y" not in str(raised.value)
    assert [error.key for error in every_error(given_properties(config))] == [key]
    assert load(config, [f"{key}=k\u00e9y"]).settings.secret_key == Secret("k\u00e9y")
    config.write_text(f"{key}=k\\u00e9y\n", encoding="utf-8")
    assert load(config).settings.secret_key == Secret("k\u00e9y")


def test_other_settings_that_a_broker_reads_otherwise_are_told(tmp_path: Path) -> None:
    key = tmp_path / "schl\u00fcssel"
    key.write_text("k")
    config = tmp_path / "server.properties"
    config.write_text(
        f"# \u00e9\ndelegation.token.secret.key=file:{key}\nlistener.name.sasl_ssl.ssl.keystore.location=/\u00e9\n"
        "super.users=User:Zo\u00eb\nlog.dirs=/\u00e9\nkafka.dt.audit.log.dir=/\u00e9\n\u00e9=1\n",
        encoding="utf-8",
    )
    loaded = load(config)
    assert loaded.settings.super_users == "User:Zo\u00eb"
    assert loaded.read_otherwise == (
        "delegation.token.secret.key",
        "listener.name.sasl_ssl.ssl.keystore.location",
        "super.users",
    )


@pytest.mark.parametrize(("current", "key"), [("a", Secret("a")), ("", None)])
def test_the_secret_key_wins_over_its_older_name_as_in_a_broker(current: str, key: Secret | None) -> None:
    both = {"delegation.token.master.key": "b", "delegation.token.secret.key": current}
    for given in (both, dict(reversed(both.items()))):
        loaded = from_properties(given, {"delegation.token.master.key"})
        assert loaded.settings.secret_key == key
        assert loaded.ignored == ("delegation.token.master.key",)
        assert every_error(Given(given, {"delegation.token.master.key"})) == []


def test_the_id_of_a_node_has_two_names_as_in_a_broker() -> None:
    for given in ({"node.id": "5"}, {"broker.id": "5", "node.id": "5"}, {"node.id": " 5", "broker.id": "5 "}):
        assert from_properties(given).settings.broker_id == 5


def test_an_override_wins_over_another_name_of_the_setting_in_the_file(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("node.id=5\ndelegation.token.master.key=a\ndelegation.token.max.lifetime.ms=1\n")
    overrides = ["broker.id=9001", "delegation.token.secret.key=b", "delegation.token.max.lifetime.sec=2"]
    settings = load(config, overrides).settings
    assert (settings.broker_id, settings.secret_key, settings.max_lifetime_ms) == (9001, Secret("b"), 2000)
    assert load(config, ["delegation.token.master.key=b"]).settings.secret_key == Secret("b")


def test_an_override_without_an_equals_sign_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"'broker\.id' is not of the form key=value"):
        load(None, ["broker.id"])


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.properties: cannot be read: No such file"):
        load(tmp_path / "missing.properties")


def test_a_secret_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_text("from a file\n")
    monkeypatch.setenv("KAFKA_DT_KEY", "from the environment")
    for text, secret in ((f"file:{path}", "from a file"), ("env:KAFKA_DT_KEY", "from the environment")):
        found = from_properties({"delegation.token.secret.key": text}).settings.secret_key
        assert found is not None
        assert found.value == secret


def test_blanks_around_a_secret_are_no_part_of_it_as_for_a_broker(tmp_path: Path) -> None:
    """A broker makes its HMACs with the key without them."""
    path = tmp_path / "server.properties"
    path.write_text("delegation.token.secret.key=a  key \\t\nssl.key.password=\\ secret\\u00a0\\u0020\n")
    settings = load(path).settings
    assert settings.secret_key is not None
    assert settings.secret_key.value == "a  key"
    assert settings.ssl_key_password is not None
    assert settings.ssl_key_password.value == "secret\u00a0"
    assert from_properties({"delegation.token.secret.key": "  "}).settings.secret_key is None


def test_blanks_in_the_file_or_the_variable_of_a_secret_belong_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text(" a key \n")
    monkeypatch.setenv("KAFKA_DT_KEY", " a key ")
    for text in (f"file:{key} ", "env:KAFKA_DT_KEY "):
        found = from_properties({"delegation.token.secret.key": text}).settings.secret_key
        assert found is not None
        assert found.value == " a key "


def test_an_empty_secret_key_counts_as_none() -> None:
    assert from_properties({"delegation.token.secret.key": ""}).settings.secret_key is None


def test_no_secret_shows_in_a_repr() -> None:
    loaded = from_properties(
        {
            "delegation.token.secret.key": "hidden treasure",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": "hidden treasure",
        }
    )
    assert "treasure" not in repr(loaded)
    assert "treasure" not in f"{loaded.settings.secret_key}"


def test_defaults_are_those_of_the_table() -> None:
    settings = Settings()
    for name, declared in options():
        assert getattr(settings, name) == declared.default
