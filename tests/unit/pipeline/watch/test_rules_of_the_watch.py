"""Each rule of the watch finds what it should, and leaves alone what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from kafka_dt.audit import EventType
from kafka_dt.pipeline.watch.habits import Habits, Owner, Principal, Revoked
from kafka_dt.pipeline.watch.rules import judge
from kafka_dt.pipeline.watch.seen import Seen
from kafka_dt.pipeline.watch.state import State
from tests.unit.pipeline.watch.days import (
    CLUSTER,
    ELSEWHERE,
    JAVA,
    JOBS,
    NOON,
    OFFICE,
    OTHERS,
    PEOPLE,
    ROTATION,
    SINCE,
    by_mechanism,
    changed,
    company,
    described,
    ends,
    for_another,
    granted,
    guesses,
    late_try,
    login,
    made,
    password_thief,
    refused_by_token,
    row,
    spray,
    thief,
    together,
    wrong_secrets,
)

CREATED, RENEWED = EventType.TOKEN_CREATED, EventType.TOKEN_RENEWED
MISMATCH: Final = "DELEGATION_TOKEN_OWNER_MISMATCH"


TRAVELLER: Final = {
    "User:etl": Owner(SINCE, frozenset({CLUSTER, "203.0.0.0/16"}), frozenset({JAVA}), frozenset({"etl-#"}))
}
YOUNG: Final = {
    "User:etl": Owner(NOON - timedelta(days=1), frozenset({CLUSTER}), frozenset({JAVA}), frozenset({"etl-#"}))
}

OFFICE_RIGHT: Final = "ALLOW Read of LITERAL Topic:'news' to User:anna from *"
ALL_TOPICS_FOR_ALL: Final = "ALLOW Read of LITERAL Topic:'*' to User:* from *"
VPN: Final = "10.40.0.0/16"
COLLEAGUES: Final = {
    "owners": {
        "User:ops": Owner(SINCE, frozenset({OFFICE}), frozenset({JAVA}), frozenset({"cli"})),
        **{name: Owner(SINCE, frozenset({OFFICE, VPN}), frozenset({JAVA}), frozenset({"cli"})) for name in PEOPLE[:2]},
    },
    "neighbours": {OFFICE: frozenset({"User:ops", *PEOPLE[:2]}), VPN: frozenset(PEOPLE[:2])},
}

FOUND: Final[dict[str, tuple[list[Seen], tuple[str, str, str]]]] = {
    "a job's token with another tool, elsewhere": ([thief()], ("stolen_token", "t-etl", "high")),
    "the owner's library, and another kind of client id": (
        [thief(software=JAVA, client="console-consumer")],
        ("stolen_token", "t-etl", "high"),
    ),
    "a foreign network": ([thief(software=JAVA, is_foreign=True)], ("stolen_token", "t-etl", "high")),
    "the HMAC in wrong hands": (
        [row(RENEWED, reason=MISMATCH, principal="User:anna", owner="User:etl", token_id="t-etl")],
        ("foreign_renewal", "t-etl", "high"),
    ),
    "the HMAC of a scheduler's token in wrong hands": (
        [
            row(
                RENEWED,
                reason=MISMATCH,
                principal="User:anna",
                owner="User:etl",
                requester="User:ops",
                token_id="t-etl",
            )
        ],
        ("foreign_renewal", "t-etl", "high"),
    ),
    "the HMAC in an operator's hands, elsewhere": (
        [row(RENEWED, reason=MISMATCH, principal="User:ops", owner="User:etl", token_id="t-etl", wide=ELSEWHERE)],
        ("foreign_renewal", "t-etl", "high"),
    ),
    "tokens of two owners refused": (
        [
            row(CREATED, reason="DELEGATION_TOKEN_AUTHORIZATION_FAILED", principal="User:anna", owner=each)
            for each in JOBS
        ],
        ("refused_changes", "User:anna", "high"),
    ),
    "a session by token is refused two things": (
        [refused_by_token(CREATED), refused_by_token(EventType.TOKENS_DESCRIBED)],
        ("refused_changes", "User:etl", "medium"),
    ),
    "a first description": ([described("User:anna")], ("new_describer", "User:anna", "medium")),
    "allowed to create after other work": ([granted(), for_another()], ("new_requester", "t-new", "high")),
    "a password instead of a keytab, elsewhere": (
        [by_mechanism("User:etl", "PLAIN", wide=OFFICE)],
        ("new_mechanism", "User:etl", "medium"),
    ),
    "a password instead of a keytab, in a foreign network": (
        [by_mechanism("User:etl", "PLAIN", is_foreign=True)],
        ("new_mechanism", "User:etl", "medium"),
    ),
    "a password instead of a keytab, with another library": (
        [by_mechanism("User:etl", "PLAIN", software="kcat")],
        ("new_mechanism", "User:etl", "medium"),
    ),
    "tokens of six owners ended": (ends(OTHERS), ("ended_for_many", "User:ops", "medium")),
    "five unknown ids in an hour": (guesses(5), ("unknown_id_burst", "198.51.100.9", "medium")),
    "eight unknown ids in a day": (guesses(8, every=80), ("unknown_id_burst", "198.51.100.9", "medium")),
    "a job's password with another tool, elsewhere": ([password_thief()], ("strange_login", "User:etl", "high")),
    "twenty wrong passwords of a job in a day, from as many addresses": (
        wrong_secrets(20),
        ("guessed_password", "User:etl", "medium"),
    ),
    "twenty wrong passwords in one row": (
        wrong_secrets(1, events=20),
        ("guessed_password", "User:etl", "medium"),
    ),
    "eight wrong HMACs of a token in a day": (
        wrong_secrets(8, token_id="t-etl", owner="User:etl"),
        ("guessed_hmac", "t-etl", "medium"),
    ),
    "tokens of three owners on a new machine in an hour": (
        together(),
        ("tokens_together", "10.20.9.9", "high"),
    ),
    "a user changed where no administrator was": (
        [changed(wide=ELSEWHERE)],
        ("strange_administration", "User:ops", "medium"),
    ),
    "a right given where jobs are": (
        [changed(OFFICE_RIGHT, wide=CLUSTER)],
        ("strange_administration", "User:ops", "medium"),
    ),
    "all topics for everybody": ([changed(ALL_TOPICS_FOR_ALL)], ("strange_administration", "User:ops", "medium")),
    "all topics for everybody, given where no administrator was": (
        [changed(ALL_TOPICS_FOR_ALL, wide=ELSEWHERE)],
        ("strange_administration", "User:ops", "high"),
    ),
    "a revoked token, elsewhere": (late_try(), ("use_after_revocation", "t-etl", "medium")),
    "a revoked token in a foreign network": (
        late_try(wide=CLUSTER, is_foreign=True),
        ("use_after_revocation", "t-etl", "medium"),
    ),
    "a password for five people": (spray(PEOPLE[:5]), ("sprayed_passwords", "198.51.100.9", "medium")),
}
QUIET: Final[dict[str, tuple[list[Seen], Habits]]] = {
    "the job at home": ([login("User:etl", "t-etl", software="kcat")], company()),
    "the job's own program in a new network": ([thief(software=JAVA)], company()),
    "a network in which others are": ([thief(wide=OFFICE)], company()),
    "a token whose first use is there": ([thief(token_id="t-fresh")], company()),
    "an owner that travels": ([thief()], company(owners=TRAVELLER)),
    "an owner of yesterday": ([thief()], company(owners=YOUNG)),
    "a company without habits": ([thief(), described("User:anna"), for_another()], Habits()),
    "a renewal by a renewer": ([row(RENEWED, principal="User:ops", owner="User:etl", token_id="t-etl")], company()),
    "a renewal that came too late": (
        [row(RENEWED, reason="DELEGATION_TOKEN_EXPIRED", principal="User:anna", token_id="t-etl")],
        company(),
    ),
    "an operator that describes tokens tries to renew one": (
        [row(RENEWED, reason=MISMATCH, principal="User:ops", owner="User:etl", token_id="t-etl", wide=OFFICE)],
        company(),
    ),
    "a mismatch without a token": ([row(RENEWED, reason=MISMATCH, principal="User:anna")], company()),
    "the requester of a token for another owner may not renew or end it": (
        [
            row(kind, reason=MISMATCH, principal="User:ops", owner="User:etl", requester="User:ops", token_id="t-etl")
            for kind in (RENEWED, EventType.TOKEN_EXPIRED)
        ],
        company(),
    ),
    "a session by token is refused one thing, again and again": ([refused_by_token(CREATED)] * 9, company()),
    "... two things, as on each day": (
        [refused_by_token(CREATED), refused_by_token(EventType.TOKENS_DESCRIBED)],
        company(refused_by_token={"User:etl": 3}),
    ),
    "one owner refused, again and again": (
        [row(CREATED, reason="DELEGATION_TOKEN_AUTHORIZATION_FAILED", principal="User:anna", owner="User:etl")] * 9,
        company(),
    ),
    "one's own token refused": (
        [row(CREATED, reason="DELEGATION_TOKEN_AUTHORIZATION_FAILED", principal=each, owner=each) for each in JOBS],
        company(),
    ),
    "a monitor describes": ([described("User:ops")], company()),
    "an owner looks at its own tokens": ([described("User:anna", 2)], company()),
    "an owner makes a token and looks at its own": ([made("User:anna", "t-new"), described("User:anna", 3)], company()),
    "a principal of today describes": ([described("User:new")], company()),
    "a scheduler of several owners": ([granted(minutes=-40), granted(), for_another()], company()),
    "an ACL for another principal": ([granted(to="User:load"), for_another()], company()),
    "an ACL of last week": ([granted(minutes=-8 * 24 * 60), for_another()], company()),
    "the usual mechanism": ([by_mechanism("User:etl", "GSSAPI")], company()),
    "a password instead of a keytab, in the job's network with its library": (
        [by_mechanism("User:etl", "PLAIN")],
        company(),
    ),
    "a principal without a mechanism": ([by_mechanism("User:new", "PLAIN")], company()),
    "a login by token has the token's mechanism": ([login("User:etl", "t-etl", mechanism="SCRAM-SHA-256")], company()),
    "tokens of four owners ended": (ends(OTHERS[:4]), company()),
    "tokens ended after a change of keys": ([ROTATION, *ends(OTHERS)], company()),
    "tokens ended in the first days": (ends(OTHERS), company(since=NOON - timedelta(days=1))),
    "a mistyped id": (guesses(3), company()),
    "one id again and again": (guesses(40, token_id="x"), company()),
    "ids of tokens that ended": (guesses(6), company(tokens={f"x{number}": CLUSTER for number in range(6)})),
    "a proxy that always has some": (guesses(6), company(guesses={"198.51.100.9": 3})),
    "a password from a network in which others are": ([password_thief(wide=OFFICE)], company()),
    "a password with a new release of the program": ([password_thief(client="etl-#")], company()),
    "a password with another job's name": ([password_thief(software=JAVA)], company()),
    "a password of an owner that travels": ([password_thief()], company(owners=TRAVELLER)),
    "a password that is new, of an owner that used tokens until now": (
        [password_thief()],
        company(principals={"User:etl": Principal(SINCE, {"GSSAPI": NOON - timedelta(days=1)})}),
    ),
    "a password that was never used before": (
        [password_thief()],
        company(principals={"User:etl": Principal(SINCE)}),
    ),
    "a password in a company without habits": ([password_thief(), *wrong_secrets(50)], Habits()),
    "nineteen wrong passwords": (wrong_secrets(19), company()),
    "a job's wrong password, again and again, at home": (wrong_secrets(50, wide=CLUSTER), company()),
    "a job's wrong password where others are": (wrong_secrets(50, wide=OFFICE), company()),
    "wrong passwords of an owner of yesterday": (
        wrong_secrets(50),
        company(owners={"User:etl": replace(YOUNG["User:etl"], since=NOON - timedelta(hours=3))}),
    ),
    "wrong passwords of a name that does not exist": (wrong_secrets(50, reason="unknown_user"), company()),
    "seven wrong HMACs": (wrong_secrets(7, token_id="t-etl", owner="User:etl"), company()),
    "wrong HMACs of a job at home": (wrong_secrets(50, token_id="t-etl", owner="User:etl", wide=CLUSTER), company()),
    "wrong HMACs of an unknown token": (wrong_secrets(50, token_id="t-none", owner=None), company()),
    "wrong HMACs after a change of keys": (
        [ROTATION, *wrong_secrets(50, token_id="t-etl", owner="User:etl")],
        company(),
    ),
    "wrong HMACs after a change of keys, learned": (
        wrong_secrets(50, token_id="t-etl", owner="User:etl"),
        company(rotated=NOON - timedelta(days=6)),
    ),
    "four mistyped passwords": (spray(PEOPLE[:4]), company()),
    "an old password that a program has": (spray(PEOPLE[:5], times=30), company()),
    "names that do not exist": (spray(OTHERS, reason="unknown_user"), company()),
    "tokens of two owners on a new machine": (together()[:2], company()),
    "tokens of three owners in three hours": (together(every=60), company()),
    "tokens of three owners, each with a client id of its own": (
        [replace(each, client=f"{each.owner}-#") for each in together()],
        company(),
    ),
    "tokens of three owners on a machine of theirs": (together(address="10.20.0.1"), company()),
    "tokens of three owners behind an address of the Internet": (together(is_public=True), company()),
    "tokens of three owners at an unknown address": (together(address="unknown"), company()),
    "tokens of new owners": (
        [replace(each, owner=name) for each, name in zip(together(), OTHERS, strict=False)],
        company(),
    ),
    "tokens of three owners in their first days": (
        together(),
        company(
            owners={name: replace(each, since=NOON - timedelta(days=2)) for name, each in company().owners.items()}
        ),
    ),
    "tokens of three owners on one of several machines": (
        [replace(each, machines=2) for each in together()],
        company(),
    ),
    "tokens of three owners behind a NAT": (together(is_nat=True), company()),
    "a revoked token at home: a job that was not told": (late_try(wide=CLUSTER), company()),
    "a token that is to end later, and was renewed": (
        late_try(row(RENEWED, minutes=10, principal="User:ops", owner="User:etl", token_id="t-etl")),
        company(),
    ),
    "a token that was tried before its end": (late_try(minutes=-1), company()),
    "another token, of which nothing is known": (late_try(token_id="t-none"), company()),
    "a revoked token of an owner that travels": (late_try(), company(owners=TRAVELLER)),
    "a revoked token of an owner that began after that": (
        late_try(),
        company(owners={"User:etl": replace(YOUNG["User:etl"], since=NOON + timedelta(minutes=5))}),
    ),
    "a change at the usual place": ([changed(), changed(OFFICE_RIGHT)], company()),
    "a change where the operator has been for a day": (
        [changed(wide=ELSEWHERE)],
        company(neighbours={OFFICE: frozenset({"User:anna", "User:ops"}), ELSEWHERE: frozenset({"User:ops"})}),
    ),
    "a change where another administrator is": (
        [changed(wide=CLUSTER)],
        company(
            principals={
                **company().principals,
                "User:load": Principal(SINCE, {"GSSAPI": SINCE}, administers=SINCE),
            }
        ),
    ),
    "a change from where colleagues of the operator are": ([changed(wide=VPN)], company(**COLLEAGUES)),
    "a change of an operator that travels": (
        [changed(wide=ELSEWHERE)],
        company(owners={"User:ops": replace(TRAVELLER["User:etl"], networks=frozenset({OFFICE, "203.0.0.0/16"}))}),
    ),
    "a change of an operator of yesterday": (
        [changed(wide=ELSEWHERE)],
        company(owners={"User:ops": YOUNG["User:etl"]}),
    ),
    "a change that was refused": ([changed(wide=ELSEWHERE, reason="CLUSTER_AUTHORIZATION_FAILED")], company()),
    "one topic for everybody to read": ([changed("ALLOW Read of LITERAL Topic:'news' to User:* from *")], company()),
    "all topics forbidden to everybody": ([changed("DENY All of LITERAL Topic:'*' to User:* from *")], company()),
    "all topics for everybody in the first days": (
        [changed(ALL_TOPICS_FOR_ALL)],
        company(since=NOON - timedelta(days=1)),
    ),
    "an address that logs in": (spray(PEOPLE[:5], address="10.30.0.1"), company()),
}


@pytest.mark.parametrize(("rows", "finding"), FOUND.values(), ids=FOUND)
def test_it_is_found(rows: list[Seen], finding: tuple[str, str, str]) -> None:
    found = judge(rows, company(), State())
    assert [(each.kind, each.subject, each.severity.value) for each in found] == [finding]


@pytest.mark.parametrize(("rows", "habits"), QUIET.values(), ids=QUIET)
def test_it_is_quiet(rows: list[Seen], habits: Habits) -> None:
    assert judge(rows, habits, State()) == []


def test_a_token_that_the_table_says_is_revoked_is_found_as_well() -> None:
    learned = company(revoked={"t-etl": Revoked("User:etl", NOON)})
    (found,) = judge(late_try()[1:], learned, State())
    assert (found.kind, found.owner) == ("use_after_revocation", "User:etl")


def test_a_first_description_makes_no_operator() -> None:
    state = State()
    judge([described("User:anna")], company(), state)
    learned = company()
    anna = replace(learned.principals["User:anna"], describes=True)
    learned = replace(learned, principals={**learned.principals, "User:anna": anna})
    tried = row(RENEWED, reason=MISMATCH, principal="User:anna", owner="User:etl", token_id="t-etl", wide=OFFICE)
    assert [each.kind for each in judge([tried], learned, state)] == ["foreign_renewal"]


@pytest.mark.parametrize("owners", [4, 5])
def test_a_service_that_renews_tokens_of_many_may_try_those_that_do_not_name_it(owners: int) -> None:
    anna = Principal(SINCE, {"GSSAPI": SINCE}, renews_for=owners)
    tried = row(RENEWED, reason=MISMATCH, principal="User:anna", owner="User:etl", token_id="t-etl", wide=OFFICE)
    found = judge(
        [tried, replace(tried, owner="User:load", token_id="t-load")], company(principals={"User:anna": anna}), State()
    )
    strange = ["foreign_renewal", "foreign_renewal", "refused_changes"]
    assert sorted(each.kind for each in found) == strange * (owners < 5)


@pytest.mark.parametrize("changes", [{"wide": ELSEWHERE}, {"kind": EventType.TOKEN_EXPIRED}])
def test_a_service_that_renews_tokens_of_many_is_found_elsewhere_and_when_it_ends_one(changes: dict[str, Any]) -> None:
    anna = Principal(SINCE, {"GSSAPI": SINCE}, renews_for=5)
    about = {"kind": RENEWED, "wide": OFFICE} | changes
    tried = row(reason=MISMATCH, principal="User:anna", owner="User:etl", token_id="t-etl", **about)
    found = judge([tried], company(principals={"User:anna": anna}), State())
    assert [each.kind for each in found] == ["foreign_renewal"]


def test_what_was_found_is_found_once_until_there_is_more() -> None:
    state = State()
    assert judge([thief()], company(), state)
    assert not judge([thief()], company(), state)
    (again,) = judge([thief(minutes=5)], company(), state)
    assert again.last_seen == NOON + timedelta(minutes=5)
    judge([thief(minutes=-5)], company(), state)
    (kept,) = state.findings.values()
    assert (kept.first_seen, kept.last_seen) == (NOON - timedelta(minutes=5), again.last_seen)


@pytest.mark.parametrize("hours", [1, 48])
def test_a_describer_is_an_administrator_if_it_was_one_a_day_before(hours: int) -> None:
    anna = Principal(SINCE, {"GSSAPI": SINCE}, administers=NOON - timedelta(hours=hours))
    found = judge([described("User:anna")], company(principals={"User:anna": anna}), State())
    assert [each.kind for each in found] == ["new_describer"] * (hours < 24)


@pytest.mark.parametrize("first", [thief, password_thief])
def test_a_place_of_a_thief_does_not_become_usual(first: Callable[[], Seen]) -> None:
    state = State()
    judge([first()], company(), state)
    learned = company()
    owners = {
        **learned.owners,
        "User:etl": Owner(SINCE, frozenset({CLUSTER, ELSEWHERE}), frozenset({JAVA}), frozenset({"etl-#"})),
    }
    learned = company(owners=owners, neighbours={**learned.neighbours, ELSEWHERE: frozenset({"User:etl"})})
    (found,) = judge([login("User:etl", "t-2", minutes=9), thief(token_id="t-2", minutes=10)], learned, state)
    assert (found.kind, found.subject) == ("stolen_token", "t-2")
