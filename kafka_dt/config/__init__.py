"""The configuration of a node: a Kafka broker's `server.properties`, with a few keys of our own.

Read `settings.py` first: it is the option table, `gateway_options.py` a part of it. `load.py` fills it, `listeners.py`
turns the keys about listeners into one value for each, `gateway.py` those of a gateway into one, `manual.py` writes the
manual's page, `option.py` holds the types.
"""

from kafka_dt.config.errors import ConfigError
from kafka_dt.config.gateway import GatewaySettings, gateway_settings
from kafka_dt.config.gateway_options import UpstreamIdentity
from kafka_dt.config.kerberos import KerberosSettings
from kafka_dt.config.listener_tls import ListenerTls
from kafka_dt.config.listeners import Endpoint, Listener, Mechanism, SecurityProtocol, listeners
from kafka_dt.config.load import Loaded, from_properties, load, read_properties
from kafka_dt.config.oauthbearer import OAuthBearerSettings
from kafka_dt.config.option import Option, Secret
from kafka_dt.config.secret_keys import SecretKeyFiles, SecretKeys
from kafka_dt.config.settings import Settings, options

__all__ = [
    "ConfigError",
    "Endpoint",
    "GatewaySettings",
    "KerberosSettings",
    "Listener",
    "ListenerTls",
    "Loaded",
    "Mechanism",
    "OAuthBearerSettings",
    "Option",
    "Secret",
    "SecretKeyFiles",
    "SecretKeys",
    "SecurityProtocol",
    "Settings",
    "UpstreamIdentity",
    "from_properties",
    "gateway_settings",
    "listeners",
    "load",
    "options",
    "read_properties",
]
