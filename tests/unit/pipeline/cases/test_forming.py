"""Which findings are one case, and which are not."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.pipeline.cases import Case, Sighting, form_cases
from kafka_dt.pipeline.cases.forming import BYSTANDERS, MOST_OWNERS, QUIET
from kafka_dt.pipeline.report.signs import Severity
from tests.support.findings import sighting

NAT = "192.0.2.1"


def subjects(cases: tuple[Case, ...]) -> list[set[str]]:
    return [{each.finding.subject for each in case.sightings} for case in cases]


def test_findings_of_one_owner_are_one_case_in_the_order_of_time() -> None:
    later, first = sighting("t2", address="10.0.0.2", day=1), sighting("t1", address="10.0.0.1")
    (case,) = form_cases([later, first])
    assert case.sightings == (first, later)
    assert (case.first_seen, case.last_seen) == (first.finding.first_seen, later.finding.last_seen)


def test_after_a_quiet_time_another_case_begins() -> None:
    days = QUIET / timedelta(days=1)
    first = sighting("t1", address="10.0.0.1")
    soon = sighting("t2", address="10.0.0.2", day=days)
    late = sighting("t3", address="10.0.0.3", day=2 * days + 0.2)
    newest, oldest = form_cases([late, first, soon])
    assert subjects((newest, oldest)) == [{"t3"}, {"t1", "t2"}]
    assert newest.related == (oldest.id,)
    assert oldest.related == (newest.id,)


def test_what_lasts_is_not_quiet() -> None:
    long = sighting("t1", address="10.0.0.1", lasts=timedelta(days=20))
    inside = sighting("t2", address="10.0.0.2", day=1)
    after = sighting("t3", address="10.0.0.3", day=21)
    assert len(form_cases([long, inside, after])) == 1


def test_one_machine_with_the_secrets_of_several_owners_is_one_case() -> None:
    guessing = sighting(None, None, kind="unknown_id_burst")
    stolen = [sighting("t1", "User:alice"), sighting("t2", "User:bob")]
    elsewhere = sighting("t1", "User:alice", "10.0.0.7", kind="foreign_renewal")
    (case,) = form_cases([guessing, *stolen, elsewhere])
    assert case.owners == ("User:alice", "User:bob")
    assert set(case.addresses) == {"203.0.113.9", "10.0.0.7"}


def test_an_address_joins_nothing_at_another_time() -> None:
    assert len(form_cases([sighting("t1", "User:alice"), sighting("t2", "User:bob", day=10)])) == 2


def test_a_whole_company_behind_one_address_is_not_one_case() -> None:
    """Its own principals show that the address is shared: they log in from there and have no finding."""
    company = [sighting(f"t{number}", f"User:u{number}", NAT) for number in range(4)]
    assert len(form_cases(company, {NAT: 4 + BYSTANDERS})) == 1
    cases = form_cases(company, {NAT: 4 + BYSTANDERS + 1})
    assert len(cases) == 4
    assert not any(case.related for case in cases)


def test_no_case_has_more_than_so_many_owners() -> None:
    company = [sighting(f"t{number}", f"User:u{number}", NAT) for number in range(3 * MOST_OWNERS)]
    cases = form_cases(company)
    assert max(len(case.owners) for case in cases) == MOST_OWNERS
    assert all(len(case.related) == len(cases) - 1 for case in cases)


def test_addresses_do_not_make_a_chain_of_a_company() -> None:
    """Each owner shares an address with the next one, as pods do over a month."""
    chain = [
        sighting(f"t{number}", f"User:u{number}", f"10.0.0.{number + step}", kind=f"kind-{step}")
        for number in range(100)
        for step in (0, 1)
    ]
    cases = form_cases(chain)
    assert max(len(case.owners) for case in cases) <= MOST_OWNERS
    assert len(cases) >= 100 // MOST_OWNERS


def test_an_address_that_no_node_saw_joins_nothing() -> None:
    unknown = [sighting("t1", "User:alice", "unknown"), sighting("t2", "User:bob", "unknown")]
    assert [case.addresses for case in form_cases(unknown)] == [(), ()]


def test_findings_without_owner_and_address_are_cases_of_their_own() -> None:
    lost = [sighting("t1", None, None), sighting("t2", None, None), sighting("t1", None, None, kind="foreign_renewal")]
    assert sorted(len(case.sightings) for case in form_cases(lost)) == [1, 2]


def test_the_most_urgent_case_is_first() -> None:
    high = sighting("t1", "User:alice", "10.0.0.1", severity=Severity.HIGH)
    new = sighting("t2", "User:bob", "10.0.0.2", day=5)
    old = sighting("t3", "User:carol", "10.0.0.3")
    ended = replace(sighting("t4", "User:dan", "10.0.0.4", day=9), ends_token=False)
    assert subjects(form_cases([old, ended, new, high])) == [{"t1"}, {"t2"}, {"t3"}, {"t4"}]


@given(order=st.randoms(use_true_random=False))
def test_the_order_of_the_findings_does_not_matter(order: random.Random) -> None:
    seen = mixed()
    expected = form_cases(seen)
    order.shuffle(seen)
    assert form_cases(seen) == expected


def test_each_finding_is_in_one_case() -> None:
    seen = mixed()
    cases = form_cases(seen)
    assert sorted(each.id for case in cases for each in case.sightings) == sorted(each.id for each in seen)
    assert len({case.id for case in cases}) == len(cases)


def mixed() -> list[Sighting]:
    return [
        sighting(f"t{number}", f"User:u{number % 13}", f"10.0.0.{number % 17}", day=number % 11) for number in range(60)
    ]


@pytest.mark.parametrize("principals", [{}, {"10.9.9.9": 500}])
def test_no_finding_is_no_case(principals: dict[str, int]) -> None:
    assert form_cases([], principals) == ()


def test_a_case_keeps_the_name_that_its_findings_had_and_of_two_parts_the_first_one_does() -> None:
    old, later = sighting("t-1", "User:a", "10.0.0.1"), sighting("t-2", "User:b", "10.0.0.1", day=1)
    (case,) = form_cases([old, later])
    named = {each.id: "case-x" for each in case.sightings}
    assert [each.id for each in form_cases([later], named=named)] == ["case-x"]
    other = sighting("t-2", "User:b", "10.0.0.2", day=1)
    parts = form_cases([old, other], named=named)
    assert {each.sightings[0].id: each.id for each in parts} == {old.id: "case-x", other.id: f"case-{other.id}"}


def test_no_two_cases_have_the_same_id_though_the_first_finding_of_one_has_named_the_other() -> None:
    first, other = sighting("t-1", "User:a", "10.0.0.1"), sighting("t-2", "User:b", "10.0.0.2", day=-1)
    cases = form_cases([first, other], named={other.id: f"case-{first.id}"})
    assert len({each.id for each in cases}) == len(cases) == 2
