"""The option table: every setting of kafka-dt, declared once as a typed field of one of the parts in `options/`.

The names, meanings, defaults and value syntax are those of a Kafka broker wherever Kafka has the setting.
`kafka_dt.config.load` fills it from a `server.properties`; `kafka_dt.config.manual` makes the manual of it.

Source: Kafka's broker configuration; KIP-48's drafts (`.sec` spellings).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from types import MappingProxyType
from typing import Any

from kafka_dt.config.options.access import AuthenticationOptions, AuthorizationOptions
from kafka_dt.config.options.audit import AuditOptions
from kafka_dt.config.options.gateway import GatewayOptions
from kafka_dt.config.options.listeners import ListenerOptions, TlsOptions
from kafka_dt.config.options.metrics import MetricsOptions
from kafka_dt.config.options.option import OPTION, ConfigError, Option, text_of
from kafka_dt.config.options.resources import LimitOptions, ProcessOptions
from kafka_dt.config.options.tokens import TokenOptions
from kafka_dt.config.options.zookeeper import ZooKeeperOptions


class Section(Enum):
    """The chapters of the manual's configuration page: the part of the table, and its title."""

    LISTENERS = ListenerOptions, "Listeners and connections"
    LIMITS = LimitOptions, "Limits of connections"
    TLS = TlsOptions, "TLS"
    AUTHENTICATION = AuthenticationOptions, "Authentication"
    AUTHORIZATION = AuthorizationOptions, "Authorization"
    TOKENS = TokenOptions, "Delegation tokens"
    ZOOKEEPER = ZooKeeperOptions, "ZooKeeper"
    GATEWAY = GatewayOptions, "Gateway"
    AUDIT = AuditOptions, "Audit events"
    METRICS = MetricsOptions, "Metrics and health"
    PROCESS = ProcessOptions, "Processes"

    def __init__(self, part: Any, title: str) -> None:
        self.part = part
        self.title = title


@dataclass(frozen=True, kw_only=True)
class Settings(
    ListenerOptions,
    LimitOptions,
    TlsOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    TokenOptions,
    ZooKeeperOptions,
    GatewayOptions,
    AuditOptions,
    MetricsOptions,
    ProcessOptions,
):
    """The settings of one node.

    Neither this class nor its parts have slots: Python cannot join several classes with slots.
    """

    overrides: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys of the form `listener.name.<name>...`, which `kafka_dt.config.listeners` reads."""

    def client_properties(self, prefix: str, skipped: Collection[str]) -> Mapping[str, str]:
        """Return the settings of Kafka's clients that stand behind a prefix, by their own names; secrets in clear.

        skipped: names behind the prefix that are no settings of Kafka's clients
        """
        properties = {}
        for name, declared in options():
            own_name = declared.key.removeprefix(prefix)
            value = getattr(self, name)
            if own_name != declared.key and own_name not in skipped and (value or value != declared.default):
                properties[own_name] = text_of(value)
        return MappingProxyType(properties)

    def refuse_leftovers(self, prefix: str, without: str) -> None:
        """Refuse a setting of a part of the node that is off: the operator expects it to be on.

        prefix: the beginning of the part's keys
        without: the key that would switch the part on
        """
        for name, declared in options():
            if declared.key.startswith(prefix) and getattr(self, name) != declared.default:
                raise ConfigError(declared.key, f"it sets nothing without {without}")


def options(section: Section | None = None) -> Iterator[tuple[str, Option]]:
    """Walk the table, or one section of it: each field's name and its option, in the order of declaration."""
    for each in Section if section is None else (section,):
        for declared in fields(each.part):
            yield declared.name, declared.metadata[OPTION]
