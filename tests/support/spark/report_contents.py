"""Contents of a report, made by hand: a little of everything, and names that would like to be markup.

`BUSY`, with its `BusyAddressThresholds`, is a sign of theft that only CONTRIBUTING.md and tests have: an address that
logs in very often.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_dt.pipeline.cases import form_cases
from kafka_dt.pipeline.report.cases import sightings
from kafka_dt.pipeline.report.contents import (
    Activity,
    Blast,
    Contents,
    Hop,
    Lines,
    Listing,
    ReachableLogin,
    Reached,
    ReachedCount,
    Series,
    TokenRow,
)
from kafka_dt.pipeline.report.signs import SIGNS, Evidence, Finding, Severity, Sign, SubjectType
from tests.support.docs.worked_examples import Example

AT = datetime(2026, 3, 6, tzinfo=UTC)
HOSTILE = (
    "User:<script>document.title='stolen'</script><img src=http://192.0.2.1/x onerror=\"document.title='stolen'\">"
)
TURNED = "etl\u202egnp.exe\x1b[2J"
"""Turns the direction of what follows, and clears a terminal."""
_DAYS = tuple(AT - timedelta(days=30 - day) for day in range(30))


def contents() -> Contents:
    """Make a report that has everything."""
    series = Series(_DAYS, {HOSTILE: tuple(range(30)), "User:alice": (5,) * 30, "other": tuple(range(30, 0, -1))})
    token = TokenRow(
        token_id="k" * 22,
        owner=HOSTILE,
        requester="User:portal",
        renewers=("User:yarn", HOSTILE),
        created_at=AT - timedelta(days=5),
        ended_at=AT + timedelta(hours=1),
        max_time=AT + timedelta(days=2),
        last_login=AT - timedelta(hours=3),
        logins=1234,
        renewals=4,
        renewable=True,
        lived=5 / 7,
    )
    listing = Listing(1200, (token,) * 30, ((HOSTILE, 900), ("User:alice", 200)))
    findings = tuple(_finding(sign, severity) for sign in SIGNS for severity in Severity)
    return Contents(
        at=AT,
        since=_DAYS[0],
        events=123_456,
        activity=(Activity("login", "ok", 100_000), Activity("login", "refused", 23_456)),
        quarantined=3,
        tokens=5000,
        alive_now=1300,
        alive={"owner": series, "requester": series, "renewer": series},
        logins=series,
        refusals=series,
        expiring=listing,
        never_used=listing,
        past_half=listing,
        findings=findings,
        finding_counts={(finding.kind, finding.severity): 1 for finding in findings},
        lines=Lines(),
        signs=SIGNS,
        generated_at=AT,
        table="/data/audit",
        cases=form_cases(sightings(findings, SIGNS, "/data/audit")),
        blast=_blast(),
        silences=((AT - timedelta(days=20), AT - timedelta(days=16)),),
    )


def empty() -> Contents:
    """Make the report of a table with one event."""
    nothing, none = Series(_DAYS, {}), Listing(0, (), ())
    return Contents(
        at=AT,
        since=AT,
        events=1,
        activity=(Activity("keys_changed", "ok", 1),),
        quarantined=0,
        tokens=0,
        alive_now=0,
        alive={"owner": nothing, "requester": nothing, "renewer": nothing},
        logins=nothing,
        refusals=nothing,
        expiring=none,
        never_used=none,
        past_half=none,
        findings=(),
        finding_counts={},
        lines=Lines(),
        signs=SIGNS,
        generated_at=AT,
        table="",
    )


def _finding(sign: Sign[Any], severity: Severity) -> Finding:
    token = sign.subject_type is SubjectType.TOKEN
    return Finding(
        kind=sign.kind,
        severity=severity,
        subject_type=sign.subject_type,
        subject="t" * 22 if token else "198.51.100.50",
        token_id="t" * 22 if token else None,
        owner=HOSTILE if token else None,
        address="198.51.100.50",
        first_seen=AT - timedelta(days=3),
        last_seen=AT - timedelta(days=2),
        events=17,
        evidence=(Evidence("unusual clients", TURNED), Evidence("in networks", HOSTILE)),
    )


def _blast() -> Blast:
    return Blast(
        type="principal",
        start=HOSTILE,
        steps=4,
        counts=(
            ReachedCount(0, "principal", True, 1),
            ReachedCount(1, "token", True, 7, ended=3),
            ReachedCount(2, "address", False, 9),
        ),
        reached=(
            Reached("principal", HOSTILE, 0, exposed=True, path=()),
            Reached("token", "t" * 22, 1, exposed=True, path=(Hop("owns", "token", "t" * 22),), alive=True),
            Reached("token", "e" * 22, 1, exposed=True, path=(Hop("owns", "token", "e" * 22),), alive=False),
            Reached(
                "address",
                "10.0.0.7",
                2,
                exposed=False,
                path=(Hop("owns", "token", "t" * 22), Hop("logged in from", "address", "10.0.0.7")),
            ),
        ),
        logins=(ReachableLogin(HOSTILE, "t" * 22, "10.0.0.7", TURNED, AT - timedelta(days=2), AT, 99),),
        login_total=99,
    )


_MODULE: Any = Example.of("A new sign of theft").module("kafka_dt/pipeline/report/signs/busy_address.py")

BUSY = _MODULE.BUSY_ADDRESS
BusyAddressThresholds = _MODULE.BusyAddressThresholds
