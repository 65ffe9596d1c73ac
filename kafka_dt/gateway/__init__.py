"""Serve the logins of clients, and forward their other requests to a cluster.

Read `forwarding.py` first: it decides for each request whether the gateway or the cluster answers it.
`connecting.py` is a client's way to the cluster: `identities.py` finds the principal's upstream identity
(`owner_tokens.py`, `token_requests.py`), and `upstream.py` is the connection.
`audited_changes.py` has the cluster decide what audit events tell of.
`brokers.py` follows the cluster's brokers, and `addresses.py` gives each an address on the gateway. `gateway.py`
joins the parts.
"""

from kafka_dt.gateway.addresses import PortListener
from kafka_dt.gateway.audited_changes import decided_by_cluster
from kafka_dt.gateway.gateway import Gateway

__all__ = ["Gateway", "PortListener", "decided_by_cluster"]
