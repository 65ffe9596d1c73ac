"""Make what the image's settings ask for, once: `python3 make_secrets.py DIRECTORY`.

    token.key             the secret key of all tokens
    users.jaas            the users of PLAIN, alice and admin (a super user), with random passwords
    alice.properties      how a client on this machine logs in as alice; admin.properties likewise

The program keeps existing files. Only their owner can read the files. It needs nothing but Python.
"""

import os
import secrets
import sys
from pathlib import Path

USERS = ("alice", "admin")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def main(directory: Path, bootstrap: str) -> None:
    """Write the files that are missing; users and their clients' files are made together."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (directory / "token.key").exists():
        write(directory / "token.key", secrets.token_urlsafe(32))
    if not (directory / "users.jaas").exists():
        passwords = {user: secrets.token_urlsafe(16) for user in USERS}
        for user, password in passwords.items():
            write(directory / f"{user}.properties", client(user, password, bootstrap))
        users = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
        write(directory / "users.jaas", f"{MODULE} {users};")


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
    main(Path(sys.argv[1]), os.environ.get("KAFKA_DT_BOOTSTRAP", "localhost:19092"))
