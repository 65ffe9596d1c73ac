"""Serve the logins of clients, and forward their other requests to a cluster.

Read `forwarding.py` first: it decides for each request whether the gateway or the cluster answers it.
`upstream_side.py` is the client's connection to the cluster. `connecting.py` opens it: `identities.py` finds the
principal's upstream identity (`owner_tokens.py`, `mapped.py`), `upstream.py` is the connection, `upstream_settings.py`
how it is made. `brokers.py` follows the cluster's brokers, `addresses.py` and `ports.py` give each an address on the
gateway. `gateway.py` joins the parts.
"""

from kafka_dt.gateway.gateway import Gateway

__all__ = ["Gateway"]
