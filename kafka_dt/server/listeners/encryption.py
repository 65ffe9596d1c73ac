"""The TLS of an encrypted listener: its certificates, kept up to date, and the principals of clients' certificates.

`ListenerEncryption` is made once for each listener, before any port opens, so that a setting that cannot be used ends
the start; `protocol` then wraps each connection, and `refresh` is called now and then.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from functools import partial
from typing import Any

from kafka_dt.audit import RefusalReason
from kafka_dt.audit.recorder import Recorder
from kafka_dt.config import ConfigError, Listener, ListenerTls
from kafka_dt.identity.certificates import InvalidMappingRule, PrincipalRules
from kafka_dt.log import event
from kafka_dt.metrics import Counts
from kafka_dt.metrics.counts import CERTIFICATE
from kafka_dt.server.addresses import address_text, client_host
from kafka_dt.server.audited.connection import certificate_not_accepted
from kafka_dt.server.connections.tls import TlsConnection, TlsServices
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.tls import ReloadingContext, TlsError, server_context

_LOG = logging.getLogger(__name__)


class ListenerEncryption:
    """The TLS of one listener that has `tls`.

    Args:
        listener: has `tls`.
        recorder: makes audit events; None where nothing is written down.
        counts: where logins by certificate are counted.
        common: the context that the workers of the node have in common for this listener, if there is one.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(
        self,
        listener: Listener,
        recorder: Recorder | None = None,
        counts: Counts | None = None,
        common: ssl.SSLContext | None = None,
    ) -> None:
        assert listener.tls is not None  # noqa: S101 - as documented
        self._tls: ListenerTls = listener.tls
        self._name = listener.name
        self._recorder = recorder
        self._counts = counts or Counts.alone()
        try:
            self._context = ReloadingContext(self._tls.settings, first=partial(server_context, common=common))
        except TlsError as error:
            raise ConfigError(self._tls.key(error.key), error.reason) from error
        self.principals = _rules(self._tls)
        self._services = TlsServices(
            context=lambda: self._context.current,
            failed=self._log_failure,
            not_accepted=self._note_not_accepted,
            server_names=bool(listener.broker_host_pattern),
        )

    def protocol(self, inner: LoginConnection) -> TlsConnection:
        """Make the protocol of a new socket, for a connection inside."""
        return TlsConnection(self._services, inner)

    async def refresh(self) -> None:
        """Take new certificates if their files have changed; with those that cannot be used the old ones stay."""
        await asyncio.to_thread(self._context.follow, f"listener {self._name}", self._tls.key)

    @property
    def certificate_end_s(self) -> float | None:
        """When the listener's certificate ends, in seconds since 1970."""
        return self._context.certificate_end_s

    def _note_not_accepted(self, peer: Any) -> None:
        self._counts.logins.add(CERTIFICATE, RefusalReason.WRONG_CREDENTIALS)
        if self._recorder is not None:
            certificate_not_accepted(self._recorder, self._name, peer)

    def _log_failure(self, peer: Any, reason: str) -> None:
        _LOG.info(
            "Failed TLS handshake of %s on listener %s: %s",
            address_text(peer),
            self._name,
            reason,
            extra=event("tls-handshake", failed=True, host=client_host(peer), listener=self._name, reason=reason),
        )


def _rules(tls: ListenerTls) -> PrincipalRules:
    try:
        return PrincipalRules.parse(tls.principal_mapping_rules)
    except InvalidMappingRule as error:
        raise ConfigError(tls.key("ssl.principal.mapping.rules"), str(error)) from None
