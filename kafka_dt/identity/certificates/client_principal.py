"""Who a client is by its certificate, on a listener without SASL.

The certificate has been verified by then: it is the one that TLS accepted.

Source: org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

from kafka_dt.identity.certificates.distinguished_names import subject_name
from kafka_dt.identity.certificates.principal_rules import PrincipalRules
from kafka_dt.tokens import ANONYMOUS, Principal


class CertificateUnusable(Exception):
    """A certificate that makes nobody a principal; its text is one line for the log."""


class CertificatePrincipals:
    """Gives the principals of clients.

    Args:
        rules: `ssl.principal.mapping.rules` of the listener.
    """

    def __init__(self, rules: PrincipalRules) -> None:
        self._rules = rules

    def principal(self, certificate: bytes | None) -> Principal:
        """Give the principal of a client.

        Args:
            certificate: what the client has shown, in DER; None if it has shown none.

        Raises:
            CertificateUnusable: no rule matches its name, or it has none that can be read.
        """
        if certificate is None:
            return ANONYMOUS
        try:
            name = subject_name(certificate)
        except ValueError as error:
            raise CertificateUnusable(f"the certificate cannot be read: {error}") from error
        mapped = self._rules.apply(name)
        if mapped is None:
            raise CertificateUnusable(f"no rule of ssl.principal.mapping.rules matches {name!r}")
        return Principal.user(mapped)
