"""The gateway: clients log in here, and what else they send goes to a cluster behind, under their own identity.

Read `forwarding.py` first: it decides for each request of a client who answers it; `upstream_side.py` is that client's
connection to the cluster. `connecting.py` gets a principal a connection there: `identities.py` says who it is
(`owner_tokens.py`, `mapped.py`), `upstream.py` is the connection, `upstream_settings.py` how it is made. `brokers.py`
follows the cluster's brokers, `addresses.py` and `ports.py` give each an address here. `gateway.py` joins the parts.
"""

from kafka_dt.gateway.gateway import Gateway

__all__ = ["Gateway"]
