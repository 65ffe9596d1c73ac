"""Which changes of a file a running node takes over, and which have to wait for a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dt.config import ConfigError, Loaded, changes, from_properties, pinned

USERS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
UPSTREAM = "kafka.dt.gateway.upstream."
NODE = {
    "listeners": "SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "PLAIN",
    "super.users": "User:admin",
    "delegation.token.secret.key": "a key",
    USERS: f'{MODULE} user_alice="one";',
}
GATEWAY = NODE | {
    f"{UPSTREAM}bootstrap.servers": "one:9092",
    f"{UPSTREAM}security.protocol": "SASL_SSL",
    f"{UPSTREAM}sasl.mechanism": "PLAIN",
    f"{UPSTREAM}sasl.jaas.config": f'{MODULE} username="gateway" password="one";',
    f"{UPSTREAM}identity": "service",
}


def made(properties: dict[str, str]) -> Loaded:
    return pinned(from_properties(properties))


def compared(before: dict[str, str], **after: str | None) -> tuple[tuple[str, ...], tuple[str, ...], Loaded]:
    """Compare settings with others, `_` for each `.`; None takes one away."""
    changed = before | {
        key.replace("__", "-").replace("_", "."): text for key, text in after.items() if text is not None
    }
    gone = {key.replace("_", ".") for key, text in after.items() if text is None}
    found = changes(made(before), made({key: text for key, text in changed.items() if key not in gone}))
    return found.applied, found.later, found.settings


def test_a_file_that_says_the_same_in_other_words_has_not_changed() -> None:
    assert compared(NODE, listeners=" SASL_PLAINTEXT://:9092 ", kafka_dt_log_level="INFO")[:2] == ((), ())


def test_what_a_running_node_takes_over_is_told_from_what_waits_for_a_restart() -> None:
    applied, later, settings = compared(
        NODE, super_users="User:ops", kafka_dt_log_level="DEBUG", kafka_dt_workers="3", listeners="SASL_PLAINTEXT://:1"
    )
    assert applied == ("kafka.dt.log.level", "super.users")
    assert later == ("kafka.dt.workers", "listeners")
    assert (settings.settings.super_users, settings.settings.log_level) == ("User:ops", "DEBUG")
    assert (settings.settings.workers, settings.settings.listeners) == (0, ("SASL_PLAINTEXT://:9092",))


def test_a_setting_that_is_taken_away_has_its_default_again() -> None:
    applied, later, settings = compared(NODE, super_users=None)
    assert (applied, later) == (("super.users",), ())
    assert settings.settings.super_users == ""


def test_the_users_of_plain_change_with_their_file_and_stay_as_they_were_read(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f'{MODULE} user_alice="one";\n')
    properties = NODE | {USERS: f"file:{users}"}
    running = made(properties)
    users.write_text(f'{MODULE} user_alice="two";\n')
    assert running.properties[USERS] == f'{MODULE} user_alice="one";', (
        "a worker that is replaced has the users of others"
    )
    found = changes(running, made(properties))
    assert found.applied == (USERS,)
    assert found.settings.properties[USERS] == f'{MODULE} user_alice="two";'


def test_values_of_config_providers_are_looked_up_again_and_stay_as_they_were_read(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("alice=one\nkey=one\n")
    providers = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    of_file = {
        USERS: f'{MODULE} user_alice="${{file:{secrets}:alice}}";',
        "delegation.token.secret.key": f"${{file:{secrets}:key}}",
    }
    running = made(NODE | providers | of_file)
    secrets.write_text("alice=two\nkey=two\n")
    found = changes(running, made(NODE | providers | of_file))
    assert found.applied == (USERS,)
    assert found.later == ("delegation.token.secret.key",)
    assert found.settings.properties[USERS] == f'{MODULE} user_alice="two";'
    assert found.settings.properties["delegation.token.secret.key"] == "one"


def test_a_mechanism_of_a_listener_comes_with_a_restart() -> None:
    without = {key: text for key, text in NODE.items() if key != USERS} | {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    found = changes(made(without), made(NODE))
    assert (found.applied, found.later) == ((), (USERS, "sasl.enabled.mechanisms"))


def test_a_file_of_secret_keys_is_followed_by_the_node_itself(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("one")
    properties = NODE | {"delegation.token.secret.key": f"file:{key}"}
    running = made(properties)
    key.write_text("two")
    found = changes(running, made(properties))
    assert (found.applied, found.later) == ((), ())
    assert compared(properties, delegation_token_secret_key="three")[1] == ("delegation.token.secret.key",)


# A gateway


@pytest.mark.parametrize(
    ("identity", "user", "is_taken_over"),
    [
        ("service", "gateway", True),
        ("service", "another", True),
        ("owner-token", "gateway", True),
        ("owner-token", "another", False),
        ("relay", "another", False),
    ],
)
def test_the_login_upstream_changes_but_not_its_user_where_tokens_name_it(
    identity: str, user: str, is_taken_over: bool
) -> None:
    before = GATEWAY | {f"{UPSTREAM}identity": identity}
    jaas = f"{UPSTREAM}sasl.jaas.config"
    found = changes(made(before), made(before | {jaas: f'{MODULE} username="{user}" password="two";'}))
    assert (found.applied, found.later) == (((jaas,), ()) if is_taken_over else ((), (jaas,)))


def test_the_brokers_of_a_gateway_change_and_a_node_becomes_none_by_a_restart() -> None:
    bootstrap = f"{UPSTREAM}bootstrap.servers"
    found = changes(made(GATEWAY), made(GATEWAY | {bootstrap: "two:9092"}))
    assert found.applied == (bootstrap,)
    assert found.settings.settings.upstream_bootstrap_servers == ("two:9092",)
    ended = changes(made(GATEWAY), made(NODE))
    assert ended.applied == ()
    assert bootstrap in ended.later


def test_a_login_upstream_that_cannot_be_read_is_an_error_without_its_words() -> None:
    before = GATEWAY | {f"{UPSTREAM}identity": "owner-token"}
    with pytest.raises(ConfigError, match=r"upstream\.sasl\.jaas\.config") as error:
        changes(made(before), made(before | {f"{UPSTREAM}sasl.jaas.config": "hidden words"}))
    assert "hidden" not in str(error.value)
