"""What all connections of a gateway share; `gateway.py` makes it, `forwarding.py` uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_dt.gateway.addresses import BrokerAddresses
    from kafka_dt.gateway.brokers import UpstreamBrokers
    from kafka_dt.gateway.connecting import Connector
    from kafka_dt.gateway.relay import LoginsUnderWay
    from kafka_dt_protocol.api.offered_versions import OfferedByUpstream


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """What all connections of a gateway share."""

    connector: Connector
    brokers: UpstreamBrokers
    addresses: BrokerAddresses
    offered: OfferedByUpstream
    relayed: LoginsUnderWay | None = None
    """The logins under way at the cluster, where it decides about them."""
    makes_its_tokens: bool = False
    """Whether new tokens are made in the cluster, which then decides who may create them."""
    audited: frozenset[int] = frozenset()
    """The APIs whose requests are forwarded by their handlers, which read the answers."""
