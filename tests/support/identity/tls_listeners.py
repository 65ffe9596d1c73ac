"""TLS listeners for a broker or kafka-dt, and the settings of clients that use them.

    tls = TlsListeners.make(folder)
    Broker(..., overrides=tls.properties)
    client = tls.client(plain("alice", "..."))               # settings of a Java client on SASL_SSL
    client = tls.client({}, tls.alice)                       # on SSL, with a certificate

Both take the very same settings, PEM files included.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_dt.tls import client_context
from tests.support.brokers.broker import sasl_properties
from tests.support.identity.tls_material import Identity, authority, leaf, subject_of
from tests.support.java.properties import ClientConfig

LISTENERS = ("SASL_PLAINTEXT", "PLAINTEXT", "SASL_SSL", "SSL")
RULES = r"RULE:^CN=([^,]+),OU=People,.*$/$1/L,DEFAULT"
STRANGER = "User:CN=Stranger,O=Elsewhere"
"""The principal of `TlsListeners.stranger`."""


@dataclass(frozen=True)
class TlsListeners:
    """An authority, what it has issued, and the settings that use it."""

    root: Identity
    server: Identity
    alice: Identity
    """By the mapping rules User:alice."""
    stranger: Identity
    """Named as in its certificate."""
    key_store: Path
    properties: dict[str, object]
    """Settings of a broker: all four security protocols; on SSL clients may show a certificate."""

    @classmethod
    def make(cls, folder: Path) -> Self:
        root = authority("Root")
        server = leaf("localhost", root)
        key_store, trust_store = folder / "server.pem", folder / "trusted.pem"
        key_store.write_text(server.key_pem() + server.chain_pem)
        trust_store.write_text(root.certificate_pem)
        return cls(
            root=root,
            server=server,
            alice=leaf("alice", root, subject_of("CN=Alice,OU=People,O=Example")),
            stranger=leaf("stranger", root, subject_of("CN=Stranger,O=Elsewhere")),
            key_store=key_store,
            properties={
                "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
                **sasl_properties(listener="sasl_ssl"),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": key_store,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": trust_store,
                "ssl.client.auth": "requested",
                "ssl.principal.mapping.rules": RULES,
            },
        )

    def client(self, config: ClientConfig, identity: Identity | None = None) -> ClientConfig:
        """The settings of a client over TLS: SASL_SSL for one that logs in, SSL for one that does not."""
        return {
            **config,
            "security.protocol": "SASL_SSL" if "sasl.mechanism" in config else "SSL",
            **self._stores(identity),
        }

    def context(self, identity: Identity | None = None) -> ssl.SSLContext:
        """The same for Python."""
        return client_context(self._stores(identity))

    def _stores(self, identity: Identity | None) -> ClientConfig:
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.root.certificate_pem}
        if identity is None:
            return trust
        return trust | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": identity.key_pem(),
            "ssl.keystore.certificate.chain": identity.chain_pem,
        }
