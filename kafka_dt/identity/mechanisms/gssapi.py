"""Logins by GSSAPI, that is Kerberos: the machine runs in threads, and rules make the principal of the Kerberos name.

MIT Kerberos reads the keytab and writes its replay cache at each message, so messages are worked on in threads. The
package gssapi is an extra and is imported only when a listener offers GSSAPI.

Source: RFC 4752; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator (createSaslKerberosServer),
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder,
org.apache.kafka.common.security.kerberos.KerberosLogin; com.sun.security.auth.module.Krb5LoginModule.
"""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kafka_dt.config import ConfigError, MechanismKeys
from kafka_dt.extras import installed_by
from kafka_dt.identity.kerberos.names import InvalidKerberosRule, NoShortName, ShortNames
from kafka_dt.identity.login.exchange import Account, Exchange
from kafka_dt.identity.mechanisms.mechanism import OpenMechanism, Resources
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import Failure, Fault, GssapiServer, GssContext, StepResult, Success

SERVICE_KEY: Final = "sasl.kerberos.service.name"
RULES_KEY: Final = "sasl.kerberos.principal.to.local.rules"
ANY_PRINCIPAL: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosSettings:
    """Who we are in Kerberos, and what becomes of the names of others."""

    keytab: str
    """The path of the file with our keys."""
    principal: str
    """Our name, such as `kafka/host.example.com@EXAMPLE.COM`; `*` for every name in the keytab."""
    rules: tuple[str, ...] = ("DEFAULT",)


def kerberos_settings(keys: MechanismKeys) -> KerberosSettings:
    """Collect what is set for one listener.

    Raises:
        ConfigError: there is no JAAS line, or it names no keytab or no principal, or another service than the setting.
    """
    jaas_key = keys.jaas_key
    # GSSAPI is Kafka's default: it may be enabled without intent.
    module = keys.required_login_module(
        'useKeyTab="true" storeKey="true" keyTab="/etc/kafka.keytab" principal="kafka/host.example.com@EXAMPLE.COM"',
        ", unless sasl.enabled.mechanisms names others",
    )
    options = module.options
    if options.get("useKeyTab", "").lower() != "true" or not options.get("keyTab"):
        raise ConfigError(jaas_key, 'GSSAPI needs our keytab: useKeyTab="true" keyTab="/path"')
    principal = options.get("principal", "")
    if not principal:
        raise ConfigError(jaas_key, 'GSSAPI needs our name: principal="kafka/host.example.com@EXAMPLE.COM"')
    service = options.get("serviceName") or keys.value(SERVICE_KEY)
    if (
        service
        and principal not in {ANY_PRINCIPAL, service}
        and not principal.startswith((f"{service}/", f"{service}@"))
    ):
        raise ConfigError(jaas_key, f"its principal {principal} is not of the service {service} ({SERVICE_KEY})")
    keytab = options["keyTab"]
    for scheme in ("FILE:", "file:"):
        keytab = keytab.removeprefix(scheme)
    return KerberosSettings(keytab=keytab, principal=principal, rules=keys.value(RULES_KEY))


class ContextMaker(Protocol):
    """What makes security contexts: `kafka_dt.identity.kerberos.gss.Acceptor`."""

    def context(self) -> GssContext:
        """Make the context of one login."""


@dataclass(frozen=True, slots=True)
class Kerberos:
    """Kerberos on one listener."""

    acceptor: ContextMaker
    names: ShortNames
    """The rules for principals' names."""
    threads: Executor
    """For what blocks."""

    @classmethod
    def from_settings(cls, listener: str, settings: KerberosSettings, threads: Executor) -> Kerberos:
        """Load GSSAPI and our keys.

        Raises:
            ConfigError: the extra is not installed, there is no key for us, or a rule cannot be used.
        """
        gss = _gss()
        try:
            names = ShortNames.parse(settings.rules, gss.default_realm())
            name = None if settings.principal == ANY_PRINCIPAL else settings.principal
            return cls(gss.Acceptor(settings.keytab, name), names, threads)
        except InvalidKerberosRule as error:
            raise ConfigError(RULES_KEY, str(error)) from None
        except gss.KeytabUnusable as error:
            key = f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"
            raise ConfigError(key, f"no key of {settings.principal} in {settings.keytab}: {error}") from None


def open_kerberos(settings: KerberosSettings, listener: str, resources: Resources) -> OpenMechanism:
    """Load GSSAPI and our keys; raises ConfigError as `Kerberos.from_settings` does."""
    kerberos = Kerberos.from_settings(listener, settings, resources.threads)
    return OpenMechanism(lambda _: GssapiExchange(kerberos))


class GssapiExchange(Exchange):
    """One login by GSSAPI."""

    def __init__(self, kerberos: Kerberos) -> None:
        self._kerberos = kerberos
        self._machine = GssapiServer(kerberos.acceptor.context())

    async def evaluate(self, message: bytes) -> StepResult:
        """Take the client's next message in a thread: it blocks."""
        kerberos = self._kerberos
        outcome = await asyncio.get_running_loop().run_in_executor(kerberos.threads, self._machine.step, message)
        if isinstance(outcome, Success):
            self.name = outcome.identity
            try:
                self.account = Account(Principal.user(kerberos.names.short_name(outcome.identity)))
            except NoShortName as error:
                return Failure(str(error), fault=Fault.IDENTITY)
        return outcome


def _gss() -> Any:
    try:
        return importlib.import_module("kafka_dt.identity.kerberos.gss")
    except (ImportError, OSError) as error:
        raise ConfigError(
            "sasl.enabled.mechanisms",
            f"GSSAPI needs the extra kerberos ({installed_by('kerberos')}), "
            f"which is built with the headers of MIT Kerberos: {error}",
        ) from None
