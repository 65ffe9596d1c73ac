"""The configuration of a node: a Kafka broker's `server.properties`, with a few keys of our own.

Read `settings.py` first: it composes the option table of its parts in `options/`, where each setting is declared once.
`load.py` fills the table, `listeners.py` turns the keys about listeners into one value for each, `gateway.py`,
`audit.py` and `metrics.py` those of a gateway, of audit events and of metrics into one, `manual.py` writes the manual's
page. `changes.py` compares settings with those that a node runs on.
"""

from kafka_dt.config.audit import AuditFileSettings, AuditSettings, AuditTopicSettings, audit_settings
from kafka_dt.config.changes import Changes, changes, pinned
from kafka_dt.config.gateway import (
    GatewaySettings,
    gateway_settings,
    identity_mechanism,
    names_clients,
    upstream_client_properties,
    without_effect,
)
from kafka_dt.config.listener_keys import MechanismKeys, MechanismSettings
from kafka_dt.config.listeners import Endpoint, Listener, ListenerTls, ProxyProtocol, listeners
from kafka_dt.config.load import (
    Given,
    Loaded,
    every_error,
    from_properties,
    given_properties,
    load,
    nearest_setting,
    read_properties,
    unknown_keys,
)
from kafka_dt.config.metrics import METRICS_LISTENER, MetricsSettings, metrics_settings
from kafka_dt.config.options.gateway import UpstreamIdentity
from kafka_dt.config.options.option import ConfigError, Option, Secret
from kafka_dt.config.options.tokens import TokenStore
from kafka_dt.config.secret_keys import SecretKeyFiles, SecretKeys
from kafka_dt.config.settings import Section, Settings, options
from kafka_dt.security_protocol import SecurityProtocol

__all__ = [
    "METRICS_LISTENER",
    "AuditFileSettings",
    "AuditSettings",
    "AuditTopicSettings",
    "Changes",
    "ConfigError",
    "Endpoint",
    "GatewaySettings",
    "Given",
    "Listener",
    "ListenerTls",
    "Loaded",
    "MechanismKeys",
    "MechanismSettings",
    "MetricsSettings",
    "Option",
    "ProxyProtocol",
    "Secret",
    "SecretKeyFiles",
    "SecretKeys",
    "Section",
    "SecurityProtocol",
    "Settings",
    "TokenStore",
    "UpstreamIdentity",
    "audit_settings",
    "changes",
    "every_error",
    "from_properties",
    "gateway_settings",
    "given_properties",
    "identity_mechanism",
    "listeners",
    "load",
    "metrics_settings",
    "names_clients",
    "nearest_setting",
    "options",
    "pinned",
    "read_properties",
    "unknown_keys",
    "upstream_client_properties",
    "without_effect",
]
