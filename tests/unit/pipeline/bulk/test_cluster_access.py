"""Settings that travel: which options there are, and that no secret is among them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from kafka_dt.config import ConfigError
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess, PlainSecret
from kafka_dt.tokens import SecretKey

CONNECT = {"zookeeper.connect": "zk1:2181/kafka"}
KEY = "a secret key of at least 32 characters"
SECRETS = [
    "delegation.token.secret.key",
    "delegation.token.master.key",
    "kafka.dt.secret.keys.previous",
    "kafka.dt.zookeeper.digest",
    "kafka.dt.zookeeper.sasl.jaas.config",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.truststore.password",
]


@pytest.mark.parametrize("make", [ClusterAccess.of_options, ClusterAccess.of_properties])
@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_itself_is_refused_and_not_repeated(make: object, key: str) -> None:
    with pytest.raises(PlainSecret, match="is a secret") as raised:
        make({**CONNECT, key: KEY})  # type: ignore[operator]  # one of two constructors
    assert str(raised.value).startswith(f"{key}: ")
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("key", ["secret.key", "secret.keys.previous"])
def test_short_names_of_secrets_are_refused_the_same_way(key: str) -> None:
    with pytest.raises(PlainSecret):
        ClusterAccess.of_options({**CONNECT, key: KEY})


def test_references_travel_and_are_followed_where_they_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    access = ClusterAccess.of_options(
        {**CONNECT, "secret.key": f"file:{tmp_path / 'key'}", "secret.keys.previous": "env:OLDER_KEYS"}
    )
    travelled = pickle.loads(pickle.dumps(access))  # noqa: S301 - our own
    assert KEY.encode() not in pickle.dumps(access)
    assert travelled == access
    monkeypatch.setenv("OLDER_KEYS", "older\noldest")
    keyring = travelled.keyring()
    assert keyring is not None
    assert keyring.keys == (SecretKey(KEY), SecretKey("older"), SecretKey("oldest"))


@pytest.mark.parametrize("given", [{}, {"secret.key": ""}])
def test_without_a_secret_key_there_is_no_ring(given: dict[str, str]) -> None:
    access = ClusterAccess.of_options({**CONNECT, **given})
    assert (access.keyring(), access.has_key) == (None, False)


def test_a_file_that_is_not_there_is_told_where_it_is_looked_for(tmp_path: Path) -> None:
    access = ClusterAccess.of_options({**CONNECT, "secret.key": f"file:{tmp_path}/nowhere"})
    assert access.has_key
    with pytest.raises(ConfigError, match="nowhere cannot be read"):
        access.keyring()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "zookeeper.connect: is needed"),
        ({"secret.key": "file:/x"}, "zookeeper.connect: is needed"),
        ({**CONNECT, "zookeper.connect": "x"}, "zookeper.connect: there is no such option; did you mean"),
        ({**CONNECT, "path": "/x"}, "path: there is no such option"),
        ({**CONNECT, "secret.key": "file:/x", "delegation.token.secret.key": "file:/x"}, "is given twice"),
    ],
)
def test_an_option_that_means_nothing_is_an_error(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ClusterAccess.of_options(given)


def test_of_a_nodes_settings_only_what_is_needed_travels() -> None:
    listeners = {"listeners": "PLAINTEXT://:9092", "ssl.keystore.password": "secret", "broker.id": "1"}
    assert ClusterAccess.of_properties({**CONNECT, **listeners}).properties == CONNECT


def test_a_value_of_a_config_provider_travels_unless_it_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DT_PLACE", "/etc/kafka")
    environment = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    given = {"zookeeper.connect": "zk:1${env:KAFKA_DT_PLACE}", CURRENT: "file:${env:KAFKA_DT_PLACE}/key"}
    access = ClusterAccess.of_properties(environment | given)
    assert access.properties == {"zookeeper.connect": "zk:1/etc/kafka", CURRENT: "file:/etc/kafka/key"}
    with pytest.raises(PlainSecret):
        ClusterAccess.of_properties(environment | given | {CURRENT: "${env:KAFKA_DT_PLACE}"})
    with pytest.raises(ConfigError, match=r"^zookeeper\.connect: \$\{env:KAFKA_DT_MISSING\}"):
        ClusterAccess.of_properties(environment | {"zookeeper.connect": "${env:KAFKA_DT_MISSING}"})


async def test_zookeeper_is_reached_without_the_secret_keys(tmp_path: Path) -> None:
    access = ClusterAccess.of_options(
        {**CONNECT, "secret.key": f"file:{tmp_path}/nowhere", "kafka.dt.zookeeper.digest": f"file:{tmp_path}/none"}
    )
    with pytest.raises(ConfigError, match=r"kafka\.dt\.zookeeper\.digest"):
        async with access.connected():
            pass
