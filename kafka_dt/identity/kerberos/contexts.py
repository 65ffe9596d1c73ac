"""Kerberos for one listener: new contexts for logins, threads to run them in, and principals from Kerberos names.

A login's messages are worked on in threads of their own, because MIT Kerberos reads the keytab and writes its replay
cache at each. The package gssapi is an extra and is imported only when a listener offers GSSAPI.

Source: RFC 4752; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator (createSaslKerberosServer),
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Protocol

from kafka_dt.config import ConfigError
from kafka_dt.extras import installed_by
from kafka_dt.identity.kerberos.names import InvalidKerberosRule, ShortNames
from kafka_dt.identity.kerberos.settings import RULES_KEY, KerberosSettings
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import GssapiServer, GssContext, StepResult


class ContextMaker(Protocol):
    """What makes security contexts."""

    def context(self) -> GssContext:
        """Make the context of one login."""


class Kerberos:
    """Kerberos on one listener.

    Args:
        acceptor: makes security contexts.
        names: the rules for principals' names.
        executor: threads for what blocks.
    """

    def __init__(self, acceptor: ContextMaker, names: ShortNames, executor: Executor) -> None:
        self._acceptor = acceptor
        self._names = names
        self._executor = executor

    @classmethod
    def from_settings(cls, listener: str, settings: KerberosSettings, executor: Executor) -> Kerberos:
        """Load GSSAPI and our keys.

        Args:
            listener: the listener's name, for messages.
            settings: of the listener.
            executor: threads for what blocks.

        Raises:
            ConfigError: the extra is not installed, there is no key for us, or a rule cannot be used.
        """
        gss = _gss()
        try:
            names = ShortNames.parse(settings.rules, gss.default_realm())
            return cls(gss.Acceptor(settings.keytab, settings.principal), names, executor)
        except InvalidKerberosRule as error:
            raise ConfigError(RULES_KEY, str(error)) from None
        except gss.KeytabUnusable as error:
            key = f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"
            raise ConfigError(key, f"no key of {settings.principal} in {settings.keytab}: {error}") from None

    def new_machine(self) -> GssapiServer:
        """Make the server's side of one login."""
        return GssapiServer(self._acceptor.context())

    async def run(self, step: Callable[[bytes], StepResult], message: bytes) -> StepResult:
        """Let a machine take a message where blocking does no harm."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, step, message)

    def principal(self, initiator: str) -> Principal:
        """Give the principal that a Kerberos name stands for.

        Raises:
            NoShortName: no rule gives it a name.
        """
        return Principal.user(self._names.short_name(initiator))


def _gss() -> Any:
    try:
        return importlib.import_module("kafka_dt.identity.kerberos.gss")
    except (ImportError, OSError) as error:
        raise ConfigError(
            "sasl.enabled.mechanisms",
            f"GSSAPI needs the extra kerberos ({installed_by('kerberos')}), "
            f"which is built with the headers of MIT Kerberos: {error}",
        ) from None
