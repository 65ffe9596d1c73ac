"""A `server.properties` means here what it means to a broker, and client properties what they mean to a client.

Kafka's own classes are the oracle.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from kafka_dt.cli.options import read_properties
from kafka_dt.client import ClientConfig, ClientConfigError
from kafka_dt.config import ConfigError, load
from tests.support.java.programs import program
from tests.support.java.tools import KafkaTools

SOURCE = Path(__file__).with_name("SettingsOracle.java")
SECRET_KEY = "delegation.token.secret.key"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
CLASSES = "org.apache.kafka.common.config.provider."
ENVIRONMENT = {"KAFKA_DT_SECRET": " from the environment ", "KAFKA_DT_EMPTY": ""}

Oracle = Callable[[str, str, bytes], str | None]


@pytest.fixture(scope="module")
def oracle(kafka_39: KafkaTools) -> Iterator[Oracle]:
    """Ask Kafka for the value of a key in a file of a broker or a client; None where it refuses the file."""
    command = program(kafka_39.java, SOURCE, classpath=kafka_39.classpath)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT
    ) as java:
        assert java.stdin is not None
        assert java.stdout is not None
        asked, answers = java.stdin, java.stdout

        def ask(who: str, key: str, file: bytes) -> str | None:
            asked.write(f"{who} {key} {base64.b64encode(file).decode()}\n")
            asked.flush()
            answer = answers.readline().strip()
            return None if answer.startswith("!") else base64.b64decode(answer, validate=True).decode()

        yield ask
        asked.close()
        answers.read()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of providers, the folder `secrets` among them, and the variables of the environment."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    text = "key=of the file\nblanks =  a b \nempty=\nescaped=a\\u00e9\nplain=\u00e9\nnested=${env:KAFKA_DT_SECRET}\n"
    (secrets / "file.properties").write_text(text, encoding="utf-8")
    (secrets / "latin.properties").write_text("key=\u00e9\n", encoding="latin-1")
    (secrets / "one").write_text("of a directory\n")
    (secrets / "folder").mkdir()
    (tmp_path / "link").symlink_to(secrets)
    (tmp_path / "outside.properties").write_text("key=outside\n")
    return tmp_path


def of_broker(path: Path) -> str | None:
    """The secret key of a node on a file; None where it refuses the file."""
    try:
        secret = load(path).settings.secret_key
    except ConfigError:
        return None
    return secret.value if secret else ""


def written(folder: Path, *lines: bytes) -> Path:
    """A file of a broker or of a client."""
    path = folder / "asked.properties"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def providers(folder: Path, **parameters: str) -> bytes:
    """The settings of the three providers."""
    lines = ["config.providers=file,dir,env"]
    for name, kind in (("file", "File"), ("dir", "Directory"), ("env", "EnvVar")):
        lines.append(f"config.providers.{name}.class={CLASSES}{kind}ConfigProvider")
    lines += [f"config.providers.{name.replace('_', '.')}={value}" for name, value in parameters.items()]
    return "\n".join(lines).replace("FOLDER", str(folder)).encode()


@pytest.mark.parametrize(
    "key",
    [b"key", b"key \t ", b"a key", rb"\ key\u0020", rb"key\u00a0", b"ke\\\n   y"],
)
def test_the_secret_key_is_that_of_a_broker(oracle: Oracle, tmp_path: Path, key: bytes) -> None:
    path = written(tmp_path, b"zookeeper.connect=localhost:2181", b"delegation.token.secret.key = " + key)
    assert of_broker(path) == oracle("broker", SECRET_KEY, path.read_bytes())


@pytest.mark.parametrize("key", [b"k\xe9y", b"k\\u00e9y", b"\xa0k\x85", b"\xc3\xa9\xe9", b"\\ud83d\\ude00"])
def test_a_secret_key_of_iso_8859_1_and_an_escaped_one_are_those_of_a_broker(
    oracle: Oracle, tmp_path: Path, key: bytes
) -> None:
    path = written(tmp_path, b"zookeeper.connect=localhost:2181", b"delegation.token.secret.key=" + key)
    assert of_broker(path) == oracle("broker", SECRET_KEY, path.read_bytes())


@pytest.mark.parametrize("key", ["k\u00e9y", "\u0085k", "k\u2028", "\U0001f600"])
def test_a_secret_key_of_utf_8_is_another_one_to_a_broker_and_refused(oracle: Oracle, tmp_path: Path, key: str) -> None:
    path = written(tmp_path, b"zookeeper.connect=localhost:2181", b"delegation.token.secret.key=" + key.encode())
    assert oracle("broker", SECRET_KEY, path.read_bytes()) != key
    with pytest.raises(ConfigError, match="a broker reads a file as ISO-8859-1"):
        load(path)


@pytest.mark.parametrize(
    "lines",
    [
        "delegation.token.secret.key=a\ndelegation.token.master.key=b",
        "delegation.token.secret.key=\ndelegation.token.master.key=b",
        "delegation.token.secret.key=a\ndelegation.token.master.key=",
        "delegation.token.master.key=b",
    ],
)
def test_the_two_names_of_the_secret_key_are_those_of_a_broker(oracle: Oracle, tmp_path: Path, lines: str) -> None:
    path = written(tmp_path, b"zookeeper.connect=localhost:2181", lines.encode())
    assert of_broker(path) == oracle("broker", SECRET_KEY, path.read_bytes())


@pytest.mark.parametrize(
    "lines",
    [
        "broker.id=5",
        "node.id=5",
        "node.id=-1",
        "node.id=-2",
        "broker.id=5\nnode.id=5",
        "broker.id=5\nnode.id=6",
        "broker.id=-1\nnode.id=6",
    ],
)
def test_the_id_of_a_node_is_that_of_a_broker(oracle: Oracle, tmp_path: Path, lines: str) -> None:
    path = written(tmp_path, b"zookeeper.connect=localhost:2181", lines.encode())
    try:
        ours = str(load(path).settings.broker_id)
    except ConfigError:
        ours = cast("str", None)
    assert ours == oracle("broker", "broker.id", path.read_bytes())


VALUES = (
    "${file:FOLDER/secrets/file.properties:key}",
    "a ${file:FOLDER/secrets/file.properties:key}, $${env:KAFKA_DT_SECRET}b",
    "${file:FOLDER/secrets/file.properties:blanks}.",
    "${file:FOLDER/secrets/file.properties:empty}",
    "${file:FOLDER/secrets/file.properties:escaped}",
    "${file:FOLDER/secrets/file.properties:plain}",
    "${file:FOLDER/secrets/file.properties:nested}",
    "${file:FOLDER/link/../link/file.properties:key}",
    "${dir:FOLDER/secrets:one}.",
    "${dir:FOLDER/link:one}",
    "${env:KAFKA_DT_SECRET}",
    "${env::KAFKA_DT_SECRET}",
    "x${env:KAFKA_DT_EMPTY}",
    "${other:key}",
    "${other:${env:KAFKA_DT_SECRET}}",
    "${a ${env:KAFKA_DT_SECRET}",
    "${ENV:KAFKA_DT_SECRET}",
    "${ env:KAFKA_DT_SECRET}",
    "${env:KAFKA_DT_SECRET",
    "${:KAFKA_DT_SECRET}",
)
REFUSED_BY_BOTH = (
    "${file:FOLDER/missing.properties:key}",
    "${file:FOLDER/secrets:key}",
    "${file:FOLDER/secrets/latin.properties:key}",
    "${env:path:KAFKA_DT_SECRET}",
    "${env:${other:KAFKA_DT_SECRET}}",
)
LEFT_BY_KAFKA = (
    "${file:FOLDER/secrets/file.properties:missing}",
    "${file:FOLDER/secrets/file.properties:a:b:}",
    "${file:key}",
    "${file::key}",
    "${file:}",
    "${dir:FOLDER/secrets:missing}",
    "${dir:FOLDER/secrets:folder}",
    "${dir:FOLDER/secrets:../outside.properties}",
    "${dir:FOLDER/missing:one}",
    "${dir:one}",
    "${env:KAFKA_DT_MISSING}",
    "${env:}",
)


@pytest.mark.parametrize("text", [*VALUES, *REFUSED_BY_BOTH])
def test_a_value_of_a_provider_is_that_of_a_broker(oracle: Oracle, folder: Path, text: str) -> None:
    value = text.replace("FOLDER", str(folder)).encode()
    path = written(folder, providers(folder), b"zookeeper.connect=a:1", SECRET_KEY.encode() + b"=" + value)
    ours = of_broker(path)
    assert ours == oracle("broker", SECRET_KEY, path.read_bytes())
    assert (ours is None) == (text in REFUSED_BY_BOTH)


@pytest.mark.parametrize("text", LEFT_BY_KAFKA)
def test_a_variable_that_a_broker_leaves_as_it_stands_is_an_error(oracle: Oracle, folder: Path, text: str) -> None:
    value = text.replace("FOLDER", str(folder))
    path = written(folder, providers(folder), b"zookeeper.connect=a:1", f"{SECRET_KEY}={value}".encode())
    assert oracle("broker", SECRET_KEY, path.read_bytes()) == value
    with pytest.raises(ConfigError, match="Kafka would leave the variable as it stands"):
        load(path)


@pytest.mark.parametrize(
    "parameters",
    [
        {"file_param_allowed_paths": "FOLDER/secrets"},
        {"file_param_allowed_paths": "FOLDER/secrets/file.properties"},
        {"file_param_allowed_paths": "/,FOLDER/./link/"},
        {"file_param_allowed_paths": ""},
        {"file_param_allowed_paths": "FOLDER/link"},
        {"file_param_allowed_paths": "FOLDER/sec"},
        {"file_param_allowed_paths": "FOLDER/secrets, /tmp"},
        {"file_param_allowed_paths": "secrets"},
        {"env_param_allowlist_pattern": "KAFKA_DT_SEC(RET)?"},
        {"env_param_allowlist_pattern": "KAFKA"},
        {"env_param_allowlist_pattern": ""},
        {"env_param_allowlist_pattern": "("},
        {"env_allowlist_pattern": "KAFKA"},
        {"dir_class": "com.example.Vault"},
        {"env_class": f"{CLASSES}EnvVarConfigProvider\\u0020"},
    ],
)
def test_parameters_of_providers_allow_what_they_allow_a_broker(
    oracle: Oracle, folder: Path, parameters: dict[str, str]
) -> None:
    value = "${file:FOLDER/link/../secrets/file.properties:key}${env:KAFKA_DT_SECRET}${dir:FOLDER/secrets:one}"
    value = value.replace("FOLDER", str(folder))
    path = written(folder, providers(folder, **parameters), b"zookeeper.connect=a:1", f"{SECRET_KEY}={value}".encode())
    theirs = oracle("broker", SECRET_KEY, path.read_bytes())
    assert of_broker(path) == (None if theirs is None or "${" in theirs else theirs)


@pytest.mark.parametrize("names", ["env,env", ",env", "${env:KAFKA_DT_SECRET},env", "file, env", "env ", "ENV", ""])
def test_the_names_of_providers_are_those_of_a_broker(oracle: Oracle, folder: Path, names: str) -> None:
    path = written(
        folder,
        f"config.providers={names}\nconfig.providers.env.class={CLASSES}EnvVarConfigProvider".encode(),
        b"zookeeper.connect=a:1",
        f"{SECRET_KEY}=${{env:KAFKA_DT_SECRET}}".encode(),
    )
    theirs = oracle("broker", SECRET_KEY, path.read_bytes())
    with_blanks = names in {"file, env", "env "}
    assert of_broker(path) == (None if with_blanks else theirs)
    assert not with_blanks or theirs == "${env:KAFKA_DT_SECRET}"


def test_a_jaas_line_of_a_listener_has_the_values_that_it_has_at_a_broker(oracle: Oracle, folder: Path) -> None:
    line = f'P required user_a="${{env:KAFKA_DT_SECRET}}" user_b="${{file:{folder}/secrets/file.properties:key}}";'
    path = written(folder, providers(folder), b"zookeeper.connect=a:1", f"{JAAS}={line}".encode())
    ours = load(path).settings.overrides[JAAS]
    assert (
        ours
        == oracle("broker", JAAS, path.read_bytes())
        == ('P required user_a=" from the environment " user_b="of the file";')
    )


@pytest.mark.parametrize("text", [*VALUES, *REFUSED_BY_BOTH])
def test_a_value_of_a_provider_is_that_of_a_client(oracle: Oracle, folder: Path, text: str) -> None:
    # A client id is a text that both take whole.
    value = "x" + text.replace("FOLDER", str(folder)) + "x"
    path = written(folder, providers(folder), b"bootstrap.servers=a:1", b"client.id=" + value.encode())
    try:
        ours = ClientConfig.from_properties(read_properties(path)).client_id
    except ClientConfigError:
        ours = cast("str", None)
    assert ours == oracle("client", "client.id", path.read_bytes())
    assert (ours is None) == (text in REFUSED_BY_BOTH)
