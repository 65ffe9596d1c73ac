"""How a client is led back to where it came from: the addresses of brokers in the answers of an upstream, rewritten.

`rewrite` takes an answer that is there as a whole. An answer that is too long for that has records in it
(`has_records`), and is sent on by `AddressesAtEnd` while it arrives. `carries_addresses` tells which answers are meant,
and `known_versions` what may be offered to clients, so that no address passes in a layout that is not known.

Read `places.py` first: where the addresses are. `skipping.py` walks over what is before them, `nodes.py` reads them,
`rewriting.py` and `fitting.py` replace them, `shapes.py` knows where there are none, `lengths.py` reads numbers.

Source: Kafka's message schemas, as kio has them.
"""

from kafka_dt_protocol.rewriting.node_addresses.at_end import AddressesAtEnd
from kafka_dt_protocol.rewriting.node_addresses.nodes import Advertise
from kafka_dt_protocol.rewriting.node_addresses.places import carries_addresses, has_records, known_versions
from kafka_dt_protocol.rewriting.node_addresses.shapes import Shapes
from kafka_dt_protocol.rewriting.node_addresses.whole import rewrite

__all__ = [
    "AddressesAtEnd",
    "Advertise",
    "Shapes",
    "carries_addresses",
    "has_records",
    "known_versions",
    "rewrite",
]
