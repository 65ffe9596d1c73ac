"""What several signs see of one use of a token is one finding of a report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from kafka_dt.pipeline.report.signs import SIGNS, Evidence, Finding, Severity, SubjectType
from kafka_dt.pipeline.report.told_once import told_once

NOON: Final = datetime(2026, 11, 3, 12, tzinfo=UTC)


def finding(
    kind: str,
    severity: str,
    fact: str = "",
    *,
    token_id: str | None = "t-1",
    address: str = "192.0.2.1",
    hours: float = 0,
    events: int = 1,
) -> Finding:
    at = NOON + timedelta(hours=hours)
    return Finding(
        kind=kind,
        severity=Severity(severity),
        subject_type=SubjectType.PRINCIPAL if token_id is None else SubjectType.TOKEN,
        subject=token_id or "User:etl",
        token_id=token_id,
        owner="User:etl",
        address=address,
        first_seen=at,
        last_seen=at + timedelta(hours=1),
        events=events,
        evidence=tuple(Evidence(label, fact) for label in ("what", "where", "how")),
    )


def kinds(*findings: Finding) -> list[str]:
    return [each.kind for each in told_once(findings, SIGNS)]


def test_the_gravest_of_several_stays_and_tells_what_the_others_say() -> None:
    (only,) = told_once(
        [
            finding("rare_library", "medium", "a tool", events=9),
            finding("rare_zone", "high", "a zone", hours=2, events=3),
            finding("stolen_token", "medium", "elsewhere", hours=1),
        ],
        SIGNS,
    )
    assert (only.kind, only.severity) == ("rare_zone", "high")
    assert (only.first_seen, only.last_seen, only.events) == (NOON, NOON + timedelta(hours=3), 9)
    assert [each.label for each in only.evidence] == ["what", "where", "how", "also"]
    assert only.evidence[-1].text == (
        "Used by a stranger: what elsewhere, where elsewhere; "
        "Used with a library that is rare for the owner: what a tool, where a tool"
    )


def test_of_equals_the_first_sign_of_the_page_stays() -> None:
    assert kinds(*(finding(kind, "medium") for kind in ("two_places", "rare_zone", "stolen_token"))) == ["stolen_token"]


def test_a_finding_that_is_alone_is_as_it_was() -> None:
    one = finding("stolen_token", "high")
    assert told_once([one], SIGNS) == (one,)


def test_another_token_and_another_address_at_another_time_are_another_use() -> None:
    uses = [finding("stolen_token", "high"), finding("rare_zone", "high", token_id="t-2")]
    later = finding("rare_zone", "high", address="192.0.2.2", hours=0.5)
    assert kinds(*uses, later) == ["stolen_token", "rare_zone", "rare_zone"]


def test_what_is_found_of_a_token_at_other_addresses_meanwhile_is_of_the_same_use() -> None:
    everywhere = finding("stolen_token", "medium")
    there = [finding("rare_zone", "medium", address=f"192.0.2.{number}") for number in range(2, 5)]
    (only,) = told_once([*there, everywhere], SIGNS)
    assert only.kind == "stolen_token"
    assert "(at 192.0.2.2): what , where ; " in only.evidence[-1].text


def test_another_large_network_meanwhile_is_another_use() -> None:
    assert kinds(finding("stolen_token", "medium"), finding("rare_zone", "medium", address="203.0.113.9")) == [
        "stolen_token",
        "rare_zone",
    ]


def test_signs_about_other_deeds_and_about_principals_keep_theirs() -> None:
    deeds = ["foreign_renewal", "use_after_revocation", "off_hours_burst"]
    others = [finding(kind, "medium") for kind in deeds]
    others += [finding(kind, "medium", token_id=None) for kind in ("strange_login", "refused_changes")]
    assert kinds(finding("stolen_token", "high"), *others) == [
        "stolen_token",
        *deeds,
        "strange_login",
        "refused_changes",
    ]


def test_the_order_is_that_of_the_gravest() -> None:
    found = [finding("stolen_token", "high"), finding("foreign_renewal", "high"), finding("rare_zone", "medium")]
    assert kinds(*found) == ["stolen_token", "foreign_renewal"]
