"""The principal of a client that shows a certificate, on a listener without SASL.

The certificate has been verified by then: it is the one that TLS accepted. Its distinguished name is written as Java
writes it, the form that ACLs and mapping rules are made for: RFC 2253 with Java's peculiarities. The last name comes
first; only the nine types of the RFC have a keyword, others are their object identifier with the value as hexadecimal
DER; non-ASCII characters stay as they are; a carriage return at an end is escaped like a blank.

Limit: a value in UTF-16 or UTF-32 (BMPString, UniversalString) is read as UTF-8, as Java does.

Source: org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
javax.security.auth.x500.X500Principal.getName, sun.security.x509.AVA.toRFC2253String; RFC 2253, RFC 5280
(TBSCertificate), X.690.
"""

from __future__ import annotations

from typing import Final

from kafka_dt.identity.certificates.principal_rules import PrincipalRules
from kafka_dt.tokens import ANONYMOUS, Principal


class CertificateUnusable(Exception):
    """A certificate that gives no principal; its text is one line for the log."""


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


_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString."""
_ESCAPED: Final = {character: f"\\{character}" for character in ',=+<>#;"\\'} | {"\0": "\\00"}
_BLANKS: Final = " \r"
_VERSION_TAG: Final = 0xA0
_LONG_FORM: Final = 0x80
_CONTINUED: Final = 0x80


def subject_name(certificate: bytes) -> str:
    """Return the name of a certificate's subject.

    Args:
        certificate: in DER.

    Raises:
        ValueError: it is not readable.
    """
    ((_, signed, _),) = _elements(certificate)
    ((_, fields, _), *_) = _elements(signed)
    tags, _, encoded = zip(*_elements(fields), strict=True)
    # The version, a number of its own kind, may be left out; then follow serial number, signature, issuer, validity.
    (subject, *_) = encoded[5 if tags[0] == _VERSION_TAG else 4 :]
    return name_text(subject)


def name_text(name: bytes) -> str:
    """Return a name, given in DER, as Java writes it.

    Raises:
        ValueError: it is not readable.
    """
    ((_, sequence, _),) = _elements(name)
    relative = [_relative_text(content) for _, content, _ in _elements(sequence)]
    return ",".join(reversed(relative))


def _relative_text(attributes: bytes) -> str:
    return "+".join(_attribute_text(content) for _, content, _ in _elements(attributes))


def _attribute_text(attribute: bytes) -> str:
    (_, identifier, _), (tag, content, encoded) = _elements(attribute)
    dotted = _dotted(identifier)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{encoded.hex()}"
    return f"{keyword}={_value_text(content.decode('utf-8', 'replace'))}"


def _value_text(value: str) -> str:
    escaped = "".join(_ESCAPED.get(character, character) for character in value)
    inner = escaped.strip(_BLANKS)
    if not inner:
        return "".join(f"\\{blank}" for blank in escaped)
    lead, _, trail = escaped.partition(inner)
    return "".join(f"\\{blank}" for blank in lead) + inner + "".join(f"\\{blank}" for blank in trail)


def _elements(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Take apart DER elements that follow each other: tag, content, and both with the length between."""
    found = []
    while data:
        length, begin = data[1] if len(data) > 1 else _LONG_FORM, 2
        if length == _LONG_FORM:
            raise ValueError("an element has no length")
        if length > _LONG_FORM:
            begin += length - _LONG_FORM
            length = int.from_bytes(data[2:begin])
        end = begin + length
        if end > len(data):
            raise ValueError("an element is cut short")
        found.append((data[0], data[begin:end], data[:end]))
        data = data[end:]
    return found


def _dotted(identifier: bytes) -> str:
    numbers, number = [], 0
    for octet in identifier:
        number = number << 7 | octet & (_CONTINUED - 1)
        if octet < _CONTINUED:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an object identifier is empty")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
