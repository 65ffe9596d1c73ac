"""Serve the logins of clients, and forward their other requests to a cluster.

Read `forwarding.py` first: it decides for each request whether the gateway or the cluster answers it.
`upstream_side.py` is a client's way to the cluster, and `connecting.py` makes the connection (`upstream.py`) with the
principal's upstream identity, which `identities.py` finds (`owner_tokens.py`, `token_requests.py`).
`audited_changes.py` has the cluster decide what audit events tell of.
`brokers.py` follows the cluster's brokers, and `addresses.py` gives each an address on the gateway. `gateway.py`
joins the parts.
"""

from kafka_dt.gateway.addresses import PortListener
from kafka_dt.gateway.audited_changes import decided_by_cluster
from kafka_dt.gateway.gateway import Gateway

__all__ = ["Gateway", "PortListener", "decided_by_cluster"]
