"""The settings of aiokafka's producer that follow from Kafka's client properties.

    AIOKafkaProducer(**producer_arguments(ClientConfig.from_properties(properties)))

Limits: a producer logs in by PLAIN and SCRAM. aiokafka cannot say that a user name is a token's, and a token ends.

Source: aiokafka's AIOKafkaProducer.
"""

from __future__ import annotations

from typing import Any

from kafka_dt.client.config import ClientConfig
from kafka_dt.client.errors import ClientConfigError
from kafka_dt.client.login_module import JAAS


def producer_arguments(client: ClientConfig) -> dict[str, Any]:
    """Give the brokers, the login and TLS as arguments of a producer; they hold the password.

    Raises:
        ClientConfigError: the login is by a token.
    """
    arguments = {
        "bootstrap_servers": [str(address) for address in client.bootstrap_servers],
        "client_id": client.client_id,
        "request_timeout_ms": client.request_timeout_ms,
        "security_protocol": str(client.security_protocol),
        "ssl_context": client.ssl_context if client.security_protocol.uses_tls else None,
    }
    login = client.login
    if login is None:
        return arguments
    if login.token_auth:
        raise ClientConfigError(JAAS, 'it is a token (tokenauth="true"), which ends some day; log in as a user')
    return arguments | {
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.username,
        "sasl_plain_password": login.password,
    }
