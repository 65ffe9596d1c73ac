"""What a listener's GSSAPI needs: the service's name and keytab, and the rules that make principals of Kerberos names.

Source: org.apache.kafka.common.security.kerberos.KerberosLogin, org.apache.kafka.common.security.JaasContext;
com.sun.security.auth.module.Krb5LoginModule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_dt.config import ConfigError, MechanismKeys

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
