"""The settings of the image and the secrets that docker-compose.yml has made for them, with a real node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_dt.client import LoginFailed, LoginMissing, TokenClient
from tests.support.docs.documents import ROOT
from tests.support.nodes import image_secrets
from tests.support.nodes.commands import called
from tests.support.nodes.server import PROGRAM, READY
from tests.support.processes.process import ChildProcess

IN_THE_IMAGE = "/etc/kafka-dt/secrets"


def make_secrets(directory: Path) -> None:
    command = [sys.executable, "-I", "-S", str(ROOT / "docker" / "make_secrets.py"), str(directory)]
    subprocess.run(command, check=True, env={**os.environ, "KAFKA_DT_BOOTSTRAP": "127.0.0.1:1"})


def settings(folder: Path, secrets: Path) -> Path:
    text = (ROOT / "docker" / "server.properties").read_text()
    assert IN_THE_IMAGE in text
    path = folder / "server.properties"
    path.write_text(text.replace(IN_THE_IMAGE, str(secrets)))
    return path


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("token.key", "delegation.token.secret.key"),
        ("users.jaas", "listener.name.sasl_plaintext.plain.sasl.jaas.config"),
    ],
)
def test_without_a_key_or_users_the_image_ends_and_names_what_is_missing(
    tmp_path: Path, missing: str, named: str
) -> None:
    (tmp_path / "secrets").mkdir()
    image_secrets.main(tmp_path / "secrets")
    (tmp_path / "secrets" / missing).unlink()
    config = settings(tmp_path, tmp_path / "secrets")
    done = called("serve", "--config", config)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"Error: {named}: the secret's file {tmp_path / 'secrets' / missing}"
    )


async def test_with_the_secrets_of_compose_only_their_users_get_in(zookeeper_connect: str, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    make_secrets(secrets)
    config = settings(tmp_path, secrets)
    overrides = [
        "listeners=SASL_PLAINTEXT://127.0.0.1:0,HOST://127.0.0.1:0",
        "kafka.dt.metrics.listener=http://127.0.0.1:0",
        f"zookeeper.connect={zookeeper_connect}",
    ]
    command = [
        str(PROGRAM),
        "serve",
        "--config",
        str(config),
        *(part for each in overrides for part in ("--override", each)),
    ]
    with ChildProcess("kafka-dt", command, tmp_path / "log", {}) as process:
        ready = process.wait_for(READY, 60)["listeners"]
        addresses = dict(each.split("://") for each in ready.split())
        assert set(addresses) == {"SASL_PLAINTEXT", "HOST"}
        lines = (secrets / "alice.properties").read_text().splitlines()
        alice = {**dict(line.split("=", 1) for line in lines), "bootstrap.servers": addresses["HOST"]}
        async with TokenClient.from_config(alice) as client:
            token = await client.create()
        assert token.owner == "User:alice"
        for wrong, error in (
            ({"bootstrap.servers": addresses["HOST"]}, LoginMissing),
            (
                {**alice, "sasl.jaas.config": alice["sasl.jaas.config"].replace('password="', 'password="x')},
                LoginFailed,
            ),
        ):
            with pytest.raises(error):
                await TokenClient.from_config(wrong).describe()


def test_secrets_are_random_private_and_made_once(tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        for _ in range(2):
            make_secrets(tmp_path / name)
            made.append({path.name: path.read_text() for path in (tmp_path / name).iterdir()})
    assert made[0].keys() == {"token.key", "users.jaas", "alice.properties", "admin.properties"}
    assert made[0] == made[1]
    assert not set(made[0].values()) & set(made[2].values())
    written = [tmp_path / "first", *(tmp_path / "first").iterdir()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in written)
