"""What is between the nodes of a KRaft cluster and its controllers, in the hands of a test.

    links = ControllerLinks()
    with KraftCluster(folder, java=java, classpath=classpath, brokers=3, controllers=3, links=links):
        links.isolate(2)          # node 2 reaches no other controller, and none of the others reaches it as one
        links.heal()

Controllers have names. Each node has a hosts file of its own (`jdk.net.hosts.file`), in which the name of another
node's controller leads to a gate. So it takes the gate whether the configuration or the leader has told it the name.
An isolated node finds connections that stay open and carry nothing, as in a partition of the network. Clients and
other brokers reach it on its listeners as before.

Limits: Linux, where all of 127.0.0.0/8 is this machine; node ids from 1 to 254.
Source: java.net.InetAddress (jdk.net.hosts.file); KIP-595, KIP-853 (the leader tells its own endpoint).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.processes.gate_thread import GateThread
from tests.support.processes.tcp_gate import TcpGate

_HOST = "127.0.0.1"


class ControllerLinks:
    """The gates of one cluster."""

    def __init__(self) -> None:
        self._thread = GateThread()
        self._between: dict[tuple[int, int], TcpGate] = {}
        """By the node that comes and the controller that it comes to."""

    def host(self, controller: int) -> str:
        """The name under which nodes know a controller."""
        return f"controller-{controller}"

    def write_hosts(self, path: Path, node: int, controllers: Iterable[int]) -> Path:
        """Write the hosts file of a node."""
        hosts = {self.host(each): _HOST if each == node else _gate_host(node, each) for each in controllers}
        path.write_text("".join(f"{address} {name}\n" for name, address in {"localhost": _HOST, **hosts}.items()))
        return path

    def start(self, nodes: Iterable[int], ports: Mapping[int, int]) -> None:
        """Open the gates.

        Args:
            nodes: the ids of all nodes.
            ports: of the controllers by their ids.
        """
        self._thread.start()
        for node in nodes:
            for controller, port in ports.items():
                if controller != node:
                    at = (_gate_host(node, controller), port)
                    self._between[node, controller] = self._thread.open(_HOST, port, at=at)

    def isolate(self, node: int) -> None:
        """Part a node from all controllers but its own, until `heal`."""
        for link, gate in self._between.items():
            if node in link:
                self._thread.call(gate.hold)

    def heal(self) -> None:
        """Let everything pass again."""
        for gate in self._between.values():
            self._thread.call(gate.open)

    def stop(self) -> None:
        """Close the gates."""
        self._thread.stop()


def _gate_host(node: int, controller: int) -> str:
    return f"127.0.{node}.{controller}"
