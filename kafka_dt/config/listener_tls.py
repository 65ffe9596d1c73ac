"""What is set about TLS for one listener: the `ssl.*` settings, its own ones over those of the node.

Source: org.apache.kafka.common.config.SslConfigs, BrokerSecurityConfigs; ChannelBuilders (client certificates on
SASL_SSL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from kafka_dt.config.options.option import Secret, Section
from kafka_dt.config.settings import options

CLIENT_AUTH: Final = "ssl.client.auth"
MAPPING_RULES: Final = "ssl.principal.mapping.rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    """The settings of an encrypted listener."""

    settings: Mapping[str, str] = field(repr=False)
    """Kafka's `ssl.*` settings by name, as `kafka_dt.tls` takes them; secrets in clear."""
    spellings: Mapping[str, str]
    """The keys of those that are set for this listener alone, as the user wrote them, by name."""
    principal_mapping_rules: str
    """`ssl.principal.mapping.rules`."""

    def key(self, name: str) -> str:
        """Return the key by which a setting was made, for errors."""
        return self.spellings.get(name, name)


def listener_tls(value: Callable[[str], Any], spelling: Callable[[str], str | None], *, sasl: bool) -> ListenerTls:
    """Gather the settings of a listener.

    :param value: gives the value of a setting for this listener
    :param spelling: gives the full key of a setting that is made for this listener alone
    :param sasl: whether clients log in by SASL; then they are asked for certificates only where that is said for the
        listener by name, as a broker has it
    """
    spellings = {key: full for key in _KEYS if (full := spelling(key))}
    texts = {key: _text(value(key)) for key in _KEYS}
    if sasl and CLIENT_AUTH not in spellings:
        texts[CLIENT_AUTH] = "none"
    rules = texts.pop(MAPPING_RULES)
    used = {key: text for key, text in texts.items() if text}
    return ListenerTls(
        settings=MappingProxyType(used), spellings=MappingProxyType(spellings), principal_mapping_rules=rules
    )


def _text(value: Any) -> str:
    if isinstance(value, Secret):
        return value.value
    return ",".join(value) if isinstance(value, tuple) else value or ""


_KEYS: Final = tuple(declared.key for _, declared in options() if declared.section is Section.TLS)
