"""One worker of a node: its parts, built and joined, and its background work.

Read `worker.py` first. `mechanisms.py` opens the SASL mechanisms and makes logins, `tokens.py` has the tokens and all
that hears of them, and `listeners.py` the open ports with the gateway behind them. `secret_keys.py` follows the files
of the secret keys and announces the worker to the others of its cluster, `shared.py` is what the workers of one node
share, and `audit_trail.py` makes the sinks of audit events. The stores come from outside: `kafka_dt.stores` has their
interfaces.
"""

from kafka_dt.node.shared import Shared
from kafka_dt.node.worker import Worker

__all__ = ["Shared", "Worker"]
