"""Make what the image's settings ask for, once: `python3 make_secrets.py DIRECTORY [CLUSTER]`.

    token.key             the secret key of all tokens
    users.jaas            the users of PLAIN, alice and admin (a super user), with random passwords
    alice.properties      how a client on this machine logs in as alice; admin.properties likewise

With CLUSTER, a second directory, it makes what a Kafka 4 cluster and its nodes ask for:

    upstream.jaas         how a node logs in at the cluster
    alice.properties      and admin.properties, as above; both are users of the cluster
    CLUSTER/              for the brokers: broker.properties (the secret key, the users), format.arguments (the id of
                          the cluster, the nodes' user), admin.properties (how the admin logs in there)

The program keeps existing files. Only their owner can read the files. It needs nothing but Python.
"""

import base64
import os
import secrets
import sys
import uuid
from pathlib import Path

USERS = ("alice", "admin")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SCRAM_MECHANISMS = ("scram-sha-256", "scram-sha-512")
BROKERS = "kafka-1:9092,kafka-2:9092,kafka-3:9092"


def main(directory: Path, bootstrap: str) -> None:
    """Write the files that are missing; users and their clients' files are made together."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (directory / "token.key").exists():
        write(directory / "token.key", secrets.token_urlsafe(32))
    if not (directory / "users.jaas").exists():
        passwords = new_clients(directory, bootstrap)
        write(directory / "users.jaas", f"{MODULE} {users(passwords)};")


def make_cluster(directory: Path, cluster: Path, bootstrap: str) -> None:
    """Write the files of a cluster and of its nodes, unless they are there."""
    for each in (directory, cluster):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    if (cluster / "broker.properties").exists():
        return
    passwords = new_clients(directory, bootstrap)
    gateway, brokers = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
    write(directory / "upstream.jaas", f'{SCRAM_MODULE} username="gateway" password="{gateway}";')
    write(cluster / "admin.properties", client("admin", passwords["admin"], BROKERS))
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    scram = f"SCRAM-SHA-512=[name=gateway,password={gateway}]"
    write(cluster / "format.arguments", f"--cluster-id={cluster_id}\n--add-scram={scram}")
    login = f'{MODULE} username="kafka" password="{brokers}"'
    lines = [
        f"delegation.token.secret.key={secrets.token_urlsafe(32)}",
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={login} {users({'kafka': brokers, **passwords})};",
        f"listener.name.controller.plain.sasl.jaas.config={login} {users({'kafka': brokers})};",
        *(f"listener.name.sasl_plaintext.{name}.sasl.jaas.config={SCRAM_MODULE};" for name in SCRAM_MECHANISMS),
    ]
    write(cluster / "broker.properties", "\n".join(lines))


def new_clients(directory: Path, bootstrap: str) -> dict[str, str]:
    """Write the settings of the users' clients; gives the passwords."""
    passwords = {user: secrets.token_urlsafe(16) for user in USERS}
    for user, password in passwords.items():
        write(directory / f"{user}.properties", client(user, password, bootstrap))
    return passwords


def users(passwords: dict[str, str]) -> str:
    """Give the part of a login module that names users."""
    return " ".join(f'user_{user}="{password}"' for user, password in passwords.items())


def client(user: str, password: str, bootstrap: str) -> str:
    """Give the settings of a Kafka client."""
    return (
        f"bootstrap.servers={bootstrap}\n"
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} username="{user}" password="{password}";'
    )


def write(path: Path, text: str) -> None:
    """Write a file for its owner alone, whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f"{text}\n")
    partial.rename(path)


if __name__ == "__main__":
    bootstrap_servers = os.environ.get("KAFKA_DT_BOOTSTRAP", "localhost:19092")
    made_in, *cluster = map(Path, sys.argv[1:])
    if cluster:
        make_cluster(made_in, cluster[0], bootstrap_servers)
    else:
        main(made_in, bootstrap_servers)
