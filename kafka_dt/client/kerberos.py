"""A login by Kerberos: what Kafka's client properties say of it.

`sasl.jaas.config` is a `Krb5LoginModule` as for Java: with `useKeyTab="true" keyTab=... principal=...` the keys of a
keytab log in; otherwise the tickets of a cache (`useTicketCache="true"`, and `ticketCache=...` for another than the
default one). Without the line the default cache is used. `sasl.kerberos.service.name` is the service of the servers;
their hosts are those of `bootstrap.servers`.

Source: com.sun.security.auth.module.Krb5LoginModule; org.apache.kafka.common.security.kerberos.KerberosLogin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from kafka_dt.client.errors import ClientConfigError
from kafka_dt.client.login_module import JAAS, login_options
from kafka_dt.jaas import KERBEROS_LOGIN_MODULE
from kafka_dt_protocol.sasl import GSSAPI

_SERVICE: Final = "sasl.kerberos.service.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """A Kerberos name, and where its keys or tickets are."""

    service: str
    """The service of the servers' names, `kafka` of `kafka/host@REALM`."""
    principal: str | None = None
    """Who logs in; None is the name in the keytab or the cache."""
    keytab: str | None = None
    """A file with keys; None takes tickets."""
    ticket_cache: str | None = None
    """A file with tickets; None is the default cache."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return GSSAPI

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read Kafka's client properties; raises ClientConfigError."""
        options = login_options(properties, GSSAPI, KERBEROS_LOGIN_MODULE)
        service = properties.get(_SERVICE, "").strip() or options.get("serviceName", "")
        if not service:
            raise ClientConfigError(
                _SERVICE, "GSSAPI needs it: the service of the servers' Kerberos names, often kafka"
            )
        keytab = options.get("keyTab") if options.get("useKeyTab", "").lower() == "true" else None
        if options.get("useKeyTab", "").lower() == "true" and not keytab:
            raise ClientConfigError(JAAS, 'useKeyTab="true" needs keyTab="/path"')
        return cls(
            service=service,
            principal=options.get("principal"),
            keytab=keytab,
            ticket_cache=options.get("ticketCache"),
        )
