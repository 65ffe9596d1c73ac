"""Ask a server whether it serves: `python3 healthcheck.py kafka|zookeeper HOST:PORT`; exit status 0 or 1.

A Kafka server is asked for its API versions, which it tells everyone before login; ZooKeeper for its state (`srvr`).
This is liveness: a Kafka server whose ZooKeeper is gone still answers, and is not helped by a restart.
It needs nothing but Python, so that a check every few seconds costs a few milliseconds.

Source: org.apache.kafka.common.requests.ApiVersionsRequest v0; "ZooKeeper Administrator's Guide", the four letter
words.
"""

import socket
import struct
import sys

TIMEOUT_S = 3.0
CORRELATION_ID = 7
API_VERSIONS_KEY = 18


def kafka(connection: socket.socket) -> bool:
    """Say whether a Kafka server answers ApiVersions v0 without an error."""
    request = struct.pack(">hhih", API_VERSIONS_KEY, 0, CORRELATION_ID, -1)
    connection.sendall(struct.pack(">i", len(request)) + request)
    answer = connection.makefile("rb").read(10)
    _, correlation_id, error = struct.unpack(">iih", answer)
    return (correlation_id, error) == (CORRELATION_ID, 0)


def zookeeper(connection: socket.socket) -> bool:
    """Say whether a ZooKeeper server has a state, which it has when it serves."""
    connection.sendall(b"srvr")
    return b"Zxid:" in connection.makefile("rb").read()


def main(kind: str, address: str) -> bool:
    """Ask the server at `host:port`."""
    host, _, port = address.rpartition(":")
    check = {"kafka": kafka, "zookeeper": zookeeper}[kind]
    try:
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
            return check(connection)
    except (OSError, struct.error):
        return False


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
