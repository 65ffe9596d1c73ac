"""The key and the users of the tests, as files for the image: `python -m tests.support.nodes.image_secrets DIRECTORY`.

docker-compose.yml runs it for the server that the tests use; the file itself names no secret.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.brokers.broker import SECRET_KEY, USERS


def main(directory: Path) -> None:
    """Write the key and the users."""
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    module = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    for name, text in (("token.key", SECRET_KEY), ("users.jaas", module)):
        path = directory / name
        path.touch(mode=0o600)
        path.write_text(f"{text}\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
