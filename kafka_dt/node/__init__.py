"""One worker of a node: its parts, built and joined, and its background work.

Read `worker.py` first. `logins.py` builds what logins are checked against and `listeners.py` the open ports with the
gateway behind them; `membership.py` announces the worker to the others of its cluster, `secret_keys.py` follows the
files of its secret keys and `audit_trail.py` makes the sinks of audit events. The stores come from outside:
`kafka_dt.stores` has their interfaces.
"""

from kafka_dt.node.worker import Shared, Worker

__all__ = ["Shared", "Worker"]
