"""What several signs see of one use of a token is one finding: what further signs say is evidence of the gravest.

    findings = told_once(findings, signs)

A use that looks strange often looks so in several respects: in its zone, its library and its client. These are one
thing to look at, and one token to end. They are also no independent reasons for doubt, so they do not add up to a
graver case. A use is that of a token at an address, and what is found of the token meanwhile at other addresses of the
same large network: a program on many machines uses it on all of them. Signs about other deeds, such as a renewal by a
stranger, keep their findings (`Sign.about_use`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.report.signs.finding import Evidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_dt.pipeline.report.signs import Sign, Signs

_IPV4: Final = 4
_FACTS: Final = 2
"""How many facts of a finding that is told as evidence are kept."""
_SEVERITIES: Final = tuple(Severity)


def told_once(findings: Iterable[Finding], signs: Signs) -> tuple[Finding, ...]:
    """Join the findings about each use of a token; the gravest one stays, of equals that of the first sign."""
    told = {sign.kind: sign for sign in signs if sign.about_use}
    tokens: dict[object, list[Finding]] = defaultdict(list)
    for finding in findings:
        is_use = finding.kind in told and finding.token_id is not None and finding.address is not None
        tokens[finding.token_id if is_use else id(finding)].append(finding)
    uses = (use for of_token in tokens.values() for use in _uses(of_token, list(told)))
    return tuple(_joined(use, told) for use in uses)


def _uses(findings: Sequence[Finding], order: Sequence[str]) -> Iterable[Sequence[Finding]]:
    """Put together what is found of each use of a token, the gravest first."""
    if len(findings) == 1:
        return [findings]
    uses: list[list[Finding]] = []
    for finding in sorted(
        findings, key=lambda each: (_SEVERITIES.index(each.severity), order.index(each.kind), each.subject)
    ):
        use = next((use for use in uses if _is_of(finding, use[0])), None)
        if use is None:
            uses.append([finding])
        else:
            use.append(finding)
    return uses


def _is_of(finding: Finding, first: Finding) -> bool:
    """Say whether a finding is about the same use of the token as a graver one."""
    if finding.address == first.address:
        return True
    meanwhile = first.first_seen <= finding.first_seen and finding.last_seen <= first.last_seen
    return meanwhile and _large_network(finding.address) == _large_network(first.address)


def _large_network(address: str | None) -> object:
    """Return the network of an address that `expressions.wide_network` gives; other text stays as it is."""
    try:
        prefix = 16 if ip_address(address or "").version == _IPV4 else 48
    except ValueError:
        return address
    return ip_network(f"{address}/{prefix}", strict=False)


def _joined(findings: Sequence[Finding], signs: dict[str, Sign[object]]) -> Finding:
    first, *others = findings
    if not others:
        return first
    said = "; ".join(
        f"{signs[each.kind].title}{_elsewhere(each, first)}: "
        + ", ".join(f"{fact.label} {fact.text}" for fact in each.evidence[:_FACTS])
        for each in others
    )
    return replace(
        first,
        first_seen=min(each.first_seen for each in findings),
        last_seen=max(each.last_seen for each in findings),
        events=max(each.events for each in findings),
        evidence=(*first.evidence, Evidence("also", said)),
    )


def _elsewhere(finding: Finding, first: Finding) -> str:
    return "" if finding.address == first.address else f" (at {finding.address})"
