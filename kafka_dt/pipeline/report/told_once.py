"""What several signs see of one use of a token is one finding: what further signs say is evidence of the gravest.

    findings = told_once(findings, signs)

A use that looks strange often looks so in several respects: in its zone, its library and its client. These are one
thing to look at, and one token to end. They are also no independent reasons for doubt, so they do not add up to a
graver case. A use is that of a token at an address. Signs about other deeds, such as a renewal by a stranger, keep
their findings (`Sign.about_use`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.report.signs.finding import Evidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_dt.pipeline.report.signs import Sign, Signs

_FACTS: Final = 2
"""How many facts of a finding that is told as evidence are kept."""
_SEVERITIES: Final = tuple(Severity)


def told_once(findings: Iterable[Finding], signs: Signs) -> tuple[Finding, ...]:
    """Join the findings about each use of a token; the gravest one stays, of equals that of the first sign."""
    told = {sign.kind: sign for sign in signs if sign.about_use}
    uses: dict[object, list[Finding]] = defaultdict(list)
    for finding in findings:
        is_use = finding.kind in told and finding.token_id is not None and finding.address is not None
        uses[(finding.token_id, finding.address) if is_use else id(finding)].append(finding)
    return tuple(_joined(of_use, told) if len(of_use) > 1 else of_use[0] for of_use in uses.values())


def _joined(findings: Sequence[Finding], signs: dict[str, Sign[object]]) -> Finding:
    order = list(signs)
    first, *others = sorted(
        findings, key=lambda each: (_SEVERITIES.index(each.severity), order.index(each.kind), each.subject)
    )
    said = "; ".join(
        f"{signs[each.kind].title}: {', '.join(f'{fact.label} {fact.text}' for fact in each.evidence[:_FACTS])}"
        for each in others
    )
    return replace(
        first,
        first_seen=min(each.first_seen for each in findings),
        last_seen=max(each.last_seen for each in findings),
        events=max(each.events for each in findings),
        evidence=(*first.evidence, Evidence("also", said)),
    )
