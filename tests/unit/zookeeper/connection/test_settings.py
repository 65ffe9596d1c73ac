"""From settings to what the client needs: who we are, how we talk, and which settings cannot be."""

import pytest

from kafka_dt.config import ConfigError, from_properties
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings, zookeeper_settings

DIGEST_LINE = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret word";'


def made(**properties: str) -> ZooKeeperSettings:
    settings = {"zookeeper.connect": "localhost:2181"} | {
        key.replace("__", "."): value for key, value in properties.items()
    }
    return zookeeper_settings(from_properties(settings).settings)


def test_without_credentials_we_are_nobody() -> None:
    settings = made(zookeeper__session__timeout__ms="1000")
    assert (settings.login, settings.tls, settings.set_acl) == (None, None, False)
    assert settings.session_timeout_ms == 1000


def test_a_user_and_password_log_in_by_digest() -> None:
    settings = made(kafka__dt__zookeeper__digest="kafka:with:colons")
    assert settings.login == ZooKeeperLogin(LoginScheme.DIGEST, "kafka", "with:colons")
    assert "colons" not in repr(settings)


def test_the_login_module_of_a_broker_logs_in_by_sasl() -> None:
    settings = made(kafka__dt__zookeeper__sasl__jaas__config=DIGEST_LINE, zookeeper__set__acl="true")
    assert settings.login == ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka", "secret word")
    assert settings.set_acl


@pytest.mark.parametrize(
    "server", [",", "/chroot", ":2181", "a:port", "a:65536", "a:0", "[::1", "a..b:2181", "a" * 64, "a:1,b:2:3"]
)
def test_what_is_no_server_is_refused_by_its_name_before_anything_connects(server: str) -> None:
    with pytest.raises(ConfigError, match=r"^zookeeper.connect: '.*' is not of the form host:port"):
        made(zookeeper__connect=server)


@pytest.mark.parametrize(
    ("connect", "used"),
    [
        ("a:2181, b:2182 ,c,", "a:2181,b:2182,c"),
        ("a,b/kafka/one", "a,b/kafka/one"),
        ("[::1]:2181,10.0.0.1:1/", "[::1]:2181,10.0.0.1:1/"),
    ],
)
def test_servers_are_read_as_zookeepers_own_client_reads_them(connect: str, used: str) -> None:
    assert made(zookeeper__connect=connect).connect == used


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"zookeeper__connect": ""}, "zookeeper.connect"),
        ({"zookeeper__set__acl": "true"}, "zookeeper.set.acl"),
        (
            {"zookeeper__set__acl": "true", "zookeeper__ssl__keystore__location": "/not/used"},
            "zookeeper.set.acl",
        ),
        ({"kafka__dt__zookeeper__digest": "no colon"}, "kafka.dt.zookeeper.digest"),
        (
            {"kafka__dt__zookeeper__digest": "a:b", "kafka__dt__zookeeper__sasl__jaas__config": DIGEST_LINE},
            "kafka.dt.zookeeper.digest",
        ),
        ({"kafka__dt__zookeeper__sasl__jaas__config": "secret"}, "kafka.dt.zookeeper.sasl.jaas.config"),
        (
            {"kafka__dt__zookeeper__sasl__jaas__config": 'com.sun.Krb5LoginModule required keyTab="secret";'},
            "kafka.dt.zookeeper.sasl.jaas.config",
        ),
        (
            {"zookeeper__ssl__client__enable": "true", "zookeeper__ssl__truststore__location": "/does/not/exist"},
            "zookeeper.ssl.truststore.location",
        ),
    ],
)
def test_what_cannot_be_is_an_error_that_names_the_key_and_no_secret(properties: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(**properties)
    assert caught.value.key == key
    assert "secret" not in str(caught.value)
