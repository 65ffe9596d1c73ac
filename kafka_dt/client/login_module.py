"""The login module in `sasl.jaas.config` of a client's properties.

Source: org.apache.kafka.common.security.JaasContext.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_dt.client.errors import ClientConfigError
from kafka_dt.jaas import JaasError, LoginModule, parse_login_module

JAAS: Final = "sasl.jaas.config"


def login_module(properties: Mapping[str, str], mechanism: str, wanted: str) -> LoginModule | None:
    """Read the line; None without one.

    mechanism: that the module is for
    wanted: its class
    Raises ClientConfigError, which shows no word of the line.
    """
    text = properties.get(JAAS, "")
    if not text.strip():
        return None
    try:
        module = parse_login_module(text)
    except JaasError as error:
        raise ClientConfigError(JAAS, str(error)) from None
    if module.name != wanted:
        raise ClientConfigError(JAAS, f"{mechanism} needs {wanted}, there is another login module")
    return module


def login_options(properties: Mapping[str, str], mechanism: str, wanted: str) -> Mapping[str, str]:
    """Return the options of the module, none without a line; as `login_module`."""
    module = login_module(properties, mechanism, wanted)
    return module.options if module else {}
