"""Settings of Kafka's clients that stand in a node's settings under a prefix of ours.

    client_properties(settings, options, "kafka.dt.gateway.upstream.", skipped)     # {"security.protocol": "SSL", ...}

Source: org.apache.kafka.clients.CommonClientConfigs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka_dt.config.options.option import Option, Secret
from kafka_dt.config.settings import Settings


def client_properties(
    settings: Settings, options: Iterable[tuple[str, Option]], prefix: str, skipped: Collection[str]
) -> dict[str, str]:
    """Take the settings of Kafka's clients by their own names, those that say nothing left out; secrets in clear.

    Args:
        settings: of the node.
        options: names of fields and their options, also others.
        prefix: what the keys begin with that are meant.
        skipped: keys that begin like that and are none of a client.
    """
    properties: dict[str, str] = {}
    for name, declared in options:
        if declared.key.startswith(prefix) and declared.key not in skipped:
            value = getattr(settings, name)
            if value or value != declared.default:
                properties[declared.key.removeprefix(prefix)] = _text(value)
    return properties


def _text(value: object) -> str:
    match value:
        case Secret():
            return value.value
        case tuple():
            return ",".join(value)
    return str(value)
