r"""CEF 0: each finding is a line.

`externalId` is the finding's id; `cs1` is the case's id, `cs2` the token, `cs3` what supports it. In the header `|` and
`\` have a `\` in front, in values `=` and `\`; what does not print is written as an escape.

Source: "Implementing ArcSight Common Event Format (CEF)", version 26
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.alerts.forms.message import PRODUCT, Message, milliseconds, product_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_dt.pipeline.alerts.alert import Alert
    from kafka_dt.pipeline.cases import Sighting

_SEVERITIES: Final[Mapping[str, int]] = {"low": 3, "medium": 6, "high": 8}
_LONGEST: Final = 1023
"""Characters of a value."""
_IPV4: Final = 4


def as_cef(alert: Alert) -> tuple[Message, ...]:
    """Write each new finding as a line."""
    return tuple(
        Message(each.id, each.finding.severity, _line(alert, each), "text/plain; charset=utf-8") for each in alert.new
    )


def _line(alert: Alert, sighting: Sighting) -> str:
    finding = sighting.finding
    header = ("CEF:0", PRODUCT, PRODUCT, product_version(), finding.kind, sighting.title)
    extension = " ".join(f"{key}={_value(text)}" for key, text in _pairs(alert, sighting))
    return "|".join([*map(_field, header), str(_SEVERITIES[finding.severity]), extension])


def _pairs(alert: Alert, sighting: Sighting) -> Iterator[tuple[str, str]]:
    finding = sighting.finding
    yield "externalId", sighting.id
    yield "start", str(milliseconds(finding.first_seen))
    yield "end", str(milliseconds(finding.last_seen))
    yield "cnt", str(finding.events)
    if sighting.address:
        yield from _address(sighting.address)
    if finding.owner:
        yield "duser", finding.owner
    yield from (("cs1Label", "case"), ("cs1", alert.case.id))
    if finding.token_id:
        yield from (("cs2Label", "token"), ("cs2", finding.token_id))
    if finding.evidence:
        yield "cs3Label", "evidence"
        yield "cs3", "; ".join(f"{fact.label}: {fact.text}" for fact in finding.evidence)
    yield "msg", f"{sighting.title}: {finding.subject}"


def _address(text: str) -> Iterator[tuple[str, str]]:
    """Give an address in the field of its kind; other text, such as a network, is a host's name."""
    try:
        address = ip_address(text)
    except ValueError:
        yield "shost", text
        return
    if address.version == _IPV4:
        yield "src", text
    else:
        yield from (("c6a2Label", "Source IPv6 Address"), ("c6a2", text))


def _field(text: str) -> str:
    return _printable(text).replace("|", r"\|")


def _value(text: str) -> str:
    return _printable(text[:_LONGEST]).replace("=", r"\=")


def _printable(text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    return "".join(
        each if each.isprintable() else f"\\{each.encode('unicode_escape').decode('ascii')}" for each in escaped
    )
