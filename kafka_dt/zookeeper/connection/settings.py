"""The settings of a ZooKeeper client: plain values, made from the configuration.

Source: org.apache.kafka.server.config.ZkConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

DEFAULT_TIMEOUT_MS = 18_000
DEFAULT_MAX_IN_FLIGHT = 256


class LoginScheme(Enum):
    """How kafka-dt logs in to ZooKeeper; the value is the scheme in the ACLs that follow from it."""

    DIGEST = "digest"
    """ZooKeeper's `addauth digest`: any name and password is taken, the ACLs decide what it opens."""
    SASL_DIGEST_MD5 = "sasl"
    """SASL DIGEST-MD5 with a user that the server knows: what a broker does with `DigestLoginModule`."""


@dataclass(frozen=True, slots=True)
class ZooKeeperLogin:
    """A name and password for ZooKeeper."""

    scheme: LoginScheme
    username: str
    """Must not contain a colon."""
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """How to reach ZooKeeper, and by which login."""

    connect: str
    """`zookeeper.connect`: `host:port,host:port` and an optional chroot."""
    session_timeout_ms: int = DEFAULT_TIMEOUT_MS
    """`zookeeper.session.timeout.ms`: the server may shorten or lengthen it."""
    connection_timeout_ms: int = DEFAULT_TIMEOUT_MS
    """`zookeeper.connection.timeout.ms`: how long a start waits."""
    set_acl: bool = False
    """`zookeeper.set.acl`: whether what we make is ours alone (and readable by all where it is not sensitive)."""
    login: ZooKeeperLogin | None = None
    """The login; a TLS certificate is the other way to have an identity."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """How to talk TLS, with trust, own certificate and host name check as wanted; None = without TLS."""
    has_certificate: bool = False
    """Whether `tls` has a certificate of ours, so that `set_acl` has an identity to give the znodes to."""
    makes_chroot: bool = True
    """Whether a chroot that is missing is made, as nodes do; for a command it is a slip of the pen."""
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT
    """How many requests may wait for an answer at once; more wait in this process."""
