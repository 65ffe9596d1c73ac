"""The option table: every setting of kafka-dt, declared once as a typed field of one of the parts in `options/`.

The names, meanings, defaults and value syntax are those of a Kafka broker wherever Kafka has the setting.
`kafka_dt.config.load` fills it from a `server.properties`; `kafka_dt.config.manual` makes the manual of it.

Source: Kafka's broker configuration; KIP-48's drafts (`.sec` spellings).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from kafka_dt.config.options.access import AccessOptions
from kafka_dt.config.options.audit import AuditOptions
from kafka_dt.config.options.gateway import GatewayOptions
from kafka_dt.config.options.listeners import ListenerOptions
from kafka_dt.config.options.option import OPTION, Option
from kafka_dt.config.options.resources import ResourceOptions
from kafka_dt.config.options.tokens import TokenOptions
from kafka_dt.config.options.zookeeper import ZooKeeperOptions


@dataclass(frozen=True, kw_only=True)
class Settings(
    ListenerOptions, AccessOptions, TokenOptions, ZooKeeperOptions, ResourceOptions, GatewayOptions, AuditOptions
):
    """The settings of one node.

    Neither this class nor its parts have slots: Python cannot join several classes with slots.
    """

    overrides: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys of the form `listener.name.<name>...`, which `kafka_dt.config.listeners` reads."""


def options() -> Iterator[tuple[str, Option]]:
    """Walk the table: the field's name and its option, part by part, in the order of declaration."""
    for declared in fields(Settings):
        if OPTION in declared.metadata:
            yield declared.name, declared.metadata[OPTION]
