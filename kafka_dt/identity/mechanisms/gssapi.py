"""Logins by GSSAPI, that is Kerberos: the machine runs in threads, and rules make the principal of the Kerberos name.

Source: RFC 4752; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator (createSaslKerberosServer),
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from kafka_dt.identity.kerberos.contexts import Kerberos
from kafka_dt.identity.kerberos.names import NoShortName
from kafka_dt.identity.kerberos.settings import KerberosSettings
from kafka_dt.identity.login.exchange import Account, Exchange
from kafka_dt.identity.mechanisms.mechanism import Accounts, OpenMechanism, Resources
from kafka_dt_protocol.sasl import Failure, Fault, StepResult, Success


def open_kerberos(settings: KerberosSettings, listener: str, resources: Resources) -> OpenMechanism:
    """Load GSSAPI and our keys; raises ConfigError as `Kerberos.from_settings` does."""
    kerberos = Kerberos.from_settings(listener, settings, resources.threads)

    def begin(_: Accounts) -> Exchange:
        return GssapiExchange(kerberos)

    return OpenMechanism(begin)


class GssapiExchange(Exchange):
    """One login by GSSAPI.

    Args:
        kerberos: of the listener.
    """

    def __init__(self, kerberos: Kerberos) -> None:
        self._kerberos = kerberos
        self._machine = kerberos.new_machine()

    def evaluate(self, message: bytes) -> Coroutine[Any, Any, StepResult]:
        """Take the client's next message in a thread: it blocks."""
        return self._run(message)

    async def _run(self, message: bytes) -> StepResult:
        outcome = await self._kerberos.run(self._machine.step, message)
        if isinstance(outcome, Success):
            self.name = outcome.identity
            try:
                self.account = Account(self._kerberos.principal(outcome.identity))
            except NoShortName as error:
                return Failure(str(error), fault=Fault.IDENTITY)
        return outcome
