"""Ask a ZooKeeper whether it serves: `python3 healthcheck.py HOST:PORT`; exit status 0 or 1.

It needs nothing but Python, so that a check every few seconds costs a few milliseconds.

Source: "ZooKeeper Administrator's Guide", the four letter words.
"""

import socket
import sys

TIMEOUT_S = 3.0


def zookeeper(connection: socket.socket) -> bool:
    """Say whether a ZooKeeper server has a state, which it has when it serves."""
    connection.sendall(b"srvr")
    return b"Zxid:" in connection.makefile("rb").read()


def main(address: str) -> bool:
    """Ask the server at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
            return zookeeper(connection)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
