from pathlib import Path

import pytest

from kafka_dt.config_providers import Provided, ProviderError, with_values

CLASSES = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "file,dir,env,vault,none",
    "config.providers.file.class": f"{CLASSES}FileConfigProvider",
    "config.providers.dir.class": f"{CLASSES}DirectoryConfigProvider",
    "config.providers.env.class": f"{CLASSES}EnvVarConfigProvider",
    "config.providers.vault.class": "com.example.VaultProvider",
}


def resolved(text: str, **parameters: str) -> str:
    """The value of a setting."""
    extra = {f"config.providers.{name.replace('_', '.')}": value for name, value in parameters.items()}
    return with_values(PROVIDERS | extra | {"key": text}, "key".__eq__, ways_out="write it here").properties["key"]


def refused(text: str, **parameters: str) -> str:
    """Why a setting has no value."""
    with pytest.raises(ProviderError) as raised:
        resolved(text, **parameters)
    assert raised.value.key == "key"
    return raised.value.reason


def test_values_come_from_a_file_a_directory_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.properties").write_text("password = \\u00e9\u00e9\n", encoding="utf-8")
    (tmp_path / "password").write_text("whole\r\n", newline="")
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "${env:HOME}")
    assert resolved(f"<${{file:{tmp_path}/secrets.properties:password}}>") == "<\u00e9\u00e9>"
    assert resolved(f"${{dir:{tmp_path}:password}}") == "whole\r\n"
    assert resolved("${env:KAFKA_DT_PASSWORD}, ${other:x} ${}") == "${env:HOME}, ${other:x} ${}"


def test_nothing_of_the_providers_is_left_and_nothing_is_read_for_other_settings() -> None:
    given = {"key": "a", "other": "${file:/missing:key}"}
    assert with_values(PROVIDERS | given, "key".__eq__, ways_out="") == Provided(given, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${file:/missing:key}", "${file:/missing:key}: the file cannot be read: No such file or directory"),
        ("${file:key}", "${file:key}: it has no path; Kafka would leave the variable as it stands"),
        ("${dir:/:a/b}", "${dir:/:a/b}: the directory has no such file; Kafka would leave the variable as it stands"),
        (
            "${env:KAFKA_DT_MISSING}",
            "${env:KAFKA_DT_MISSING}: the environment variable is not set; Kafka would leave the variable as it stands",
        ),
        ("${env:path:KEY}", "${env:path:KEY}: an environment variable has no path"),
        (
            "${vault:a}",
            "config.providers.vault.class: kafka-dt does not have 'com.example.VaultProvider'; write it here",
        ),
        (
            "${none:a}",
            "the provider none has no config.providers.none.class; Kafka would leave the variable as it stands",
        ),
    ],
)
def test_a_variable_without_a_value_is_an_error_with_the_reason(text: str, reason: str) -> None:
    assert refused(text) == reason


def test_a_parameter_that_cannot_be_used_or_does_not_allow_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "p")
    for pattern in ("[", "[a[b]]", "KAFKA"):
        reason = refused("${env:KAFKA_DT_PASSWORD}", env_param_allowlist_pattern=pattern)
        assert "config.providers.env.param.allowlist.pattern " in reason
    for paths in ("relative", "/missing-folder", "/usr", "/, /usr"):
        reason = refused("${file:/etc/hostname:a}", file_param_allowed_paths=paths)
        assert "config.providers.file.param.allowed.paths" in reason


def test_a_file_that_cannot_be_read_is_an_error_without_its_words(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text(r"key=pass\uword")
    assert refused(f"${{file:{path}:key}}").endswith(r": the file has \u without four hex digits behind it")
    path.write_bytes(b"key=\xe9")
    assert refused(f"${{file:{path}:key}}").endswith(": the file cannot be read: it is not UTF-8 text")
    assert refused(f"${{dir:{tmp_path}:secrets}}").endswith(": the file cannot be read: it is not UTF-8 text")


def test_a_variable_of_the_environment_that_is_not_utf_8_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "p\udce9")
    assert refused("${env:KAFKA_DT_PASSWORD}").endswith(": the environment variable is not UTF-8 text")


def test_a_value_that_looks_like_a_place_of_ours_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "file:/etc/passwd")
    reason = refused("${env:KAFKA_DT_PASSWORD}")
    assert reason == "the value of its provider begins with file: or env:, as the place of a secret does in kafka-dt"
    assert resolved("file:${env:KAFKA_DT_PASSWORD}") == "file:file:/etc/passwd"


def test_values_show_neither_in_a_repr_nor_unnoticed_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "one, it's")
    found = with_values(PROVIDERS | {"key": "${env:KAFKA_DT_PASSWORD}"}, "key".__eq__, ways_out="")
    assert "one" not in repr(found)
    assert found.shown_by("key", f"{'one, it' + chr(39) + 's'!r} is no number")
    assert found.shown_by("key", "'one' is no number")
    assert not found.shown_by("key", "it is no number")
    assert not found.shown_by("other", "one")
