"""Findings of the watch: made of one row of events, or of the counts of a day.

    finding_of(NEW_DESCRIBER, row, Severity.HIGH, {"tokens in an answer": 40})
    finding_of_count(UNKNOWN_ID_BURST, "198.51.100.9", tally, Severity.MEDIUM, {"different ids": 12})

They have the kinds and subjects of the report's, so a finding of the watch and one of the report about the same thing
have the same id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_dt.pipeline.report.signs.finding import SHOWN, Evidence, Finding, Severity, SubjectType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kafka_dt.pipeline.report.signs.sign import Sign
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import Tally


def finding_of(sign: Sign[Any], row: Seen, severity: Severity, facts: Mapping[str, object]) -> Finding:
    """Make a finding of a row, about its token or else its principal.

    Args:
        sign: of the report.
        row: what was seen.
        severity: of the finding.
        facts: label -> what the evidence says; None and an empty text are left out.
    """
    about_token = sign.subject_type is SubjectType.TOKEN
    return Finding(
        kind=sign.kind,
        severity=severity,
        subject_type=sign.subject_type,
        subject=str(row.token_id if about_token else row.principal),
        token_id=row.token_id if about_token else None,
        owner=row.owner if about_token else row.principal,
        address=row.address,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        events=row.events,
        evidence=tuple(_evidence(facts)),
    )


def finding_of_count(
    sign: Sign[Any],
    subject: str,
    tally: Tally,
    severity: Severity,
    facts: Mapping[str, object],
    *,
    owner: str | None = None,
) -> Finding:
    """Make a finding of a count, about its token, its principal or its address.

    Args:
        sign: of the report.
        subject: what was counted of.
        tally: the count of a day.
        severity: of the finding.
        facts: as for `finding_of`; attempts, addresses and programs are told after them.
        owner: the owner of the token; of a principal it is the principal.
    """
    more = {"from addresses": some(tally.addresses), "clients": some(tally.programs)}
    return Finding(
        kind=sign.kind,
        severity=severity,
        subject_type=sign.subject_type,
        subject=subject,
        token_id=subject if sign.subject_type is SubjectType.TOKEN else None,
        owner=subject if sign.subject_type is SubjectType.PRINCIPAL else owner,
        address=max(tally.addresses, key=lambda name: (tally.addresses[name], name)),
        first_seen=tally.first_seen,
        last_seen=tally.last_seen,
        events=tally.events,
        evidence=tuple(_evidence({**facts, "events": tally.events, **more})),
    )


def some(names: Iterable[str], number: int = 0) -> str:
    """Show names; `number` says how many there are if not all of them are given."""
    shown = sorted(names)
    more = max(len(shown), number) - len(shown[:SHOWN])
    return ", ".join(shown[:SHOWN]) + (f" and {more} more" if more else "")


def _evidence(facts: Mapping[str, object]) -> Iterator[Evidence]:
    for label, fact in facts.items():
        if fact is not None and fact != "":
            yield Evidence(label, str(fact))
