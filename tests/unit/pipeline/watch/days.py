"""A company of a few owners as the watch knows it, and rows of events.

    habits = company()
    found = judge([login("User:etl", "t-etl", wide="198.51.0.0/16", software="kcat")], habits, State())

The company is known since the first of March 2026; `NOON` is a month later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kafka_dt.audit import EventType
from kafka_dt.pipeline.watch.habits import Habits, Owner, Principal
from kafka_dt.pipeline.watch.seen import Seen

NOON: Final = datetime(2026, 4, 1, 12, tzinfo=UTC)
SINCE: Final = datetime(2026, 3, 1, tzinfo=UTC)
CLUSTER: Final = "10.20.0.0/16"
OFFICE: Final = "10.30.0.0/16"
ELSEWHERE: Final = "198.51.0.0/16"
JAVA: Final = "apache-kafka-java"


def company(**changes: Any) -> Habits:
    """Give the habits: two jobs in a cluster, and a person and an operator in an office."""
    jobs = {name: Owner(SINCE, frozenset({CLUSTER}), frozenset({JAVA}), frozenset({"etl-#"})) for name in JOBS}
    person = Owner(SINCE, frozenset({OFFICE}), frozenset({JAVA}), frozenset({"notebook-#"}))
    habits = Habits(
        since=SINCE,
        at=NOON,
        owners={**jobs, "User:anna": person, "User:ops": person},
        neighbours={CLUSTER: frozenset(JOBS), OFFICE: frozenset({"User:anna", "User:ops"})},
        principals={
            **{name: Principal(SINCE, {"GSSAPI": SINCE}) for name in (*JOBS, "User:anna", *PEOPLE)},
            "User:ops": Principal(SINCE, {"SCRAM-SHA-512": SINCE}, describes=True, administers=SINCE, ended=1),
        },
        tokens={"t-etl": CLUSTER, "t-load": CLUSTER, "t-anna": OFFICE},
        owned={"User:etl": 1, "User:load": 1, "User:anna": 2},
        addresses=frozenset({"10.20.0.1", "10.30.0.1"}),
    )
    return replace(habits, **changes)


JOBS: Final = ("User:etl", "User:load")
OTHERS: Final = [f"User:o{number}" for number in range(6)]
PEOPLE: Final = tuple(f"User:p{number}" for number in range(8))


def row(kind: EventType, *, minutes: float = 0, reason: str | None = None, **fields: Any) -> Seen:
    """Make a row of one event at some minutes after noon; refused if there is a reason."""
    at = NOON + timedelta(minutes=minutes)
    made: dict[str, Any] = {
        "first_seen": at,
        "last_seen": at,
        "software": JAVA,
        "address": "10.20.0.1",
        "wide": CLUSTER,
        **fields,
    }
    return Seen(type=kind.value, outcome="ok" if reason is None else "refused", reason=reason, **made)


def login(owner: str, token_id: str, **fields: Any) -> Seen:
    """Make a row of a login by token."""
    made: dict[str, Any] = {"client": "etl-#", "owner": owner, "token_id": token_id, "principal": owner}
    return row(EventType.LOGIN, **made | fields)


def thief(token_id: str = "t-etl", **fields: Any) -> Seen:
    """Use the token of a job from another network, with another program."""
    made: dict[str, Any] = {"wide": ELSEWHERE, "address": "198.51.100.7", "is_public": True, "software": "kcat"}
    return login("User:etl", token_id, **made | fields)


def together(every: float = 10, **fields: Any) -> list[Seen]:
    """Use tokens of three owners on a new machine of the cluster, some minutes after each other."""
    owners = (*JOBS, "User:anna")
    return [
        login(owner, f"t-{owner[5:]}", minutes=every * number, **{"address": "10.20.9.9", "client": "job-#"} | fields)
        for number, owner in enumerate(owners)
    ]


def ends(owners: Sequence[str]) -> list[Seen]:
    """End a token of each owner."""
    return [row(EventType.TOKEN_EXPIRED, principal="User:ops", owner=owner, token_id=f"t-{owner}") for owner in owners]


def late_try(after: Seen | None = None, **fields: Any) -> list[Seen]:
    """End a token of a job by a request, and try it an hour later from another network."""
    made: dict[str, Any] = {"token_id": "t-etl", "reason": "unknown_token", "wide": ELSEWHERE, "minutes": 60, **fields}
    end = row(EventType.TOKEN_EXPIRED, principal="User:ops", owner="User:etl", token_id="t-etl", expiry=NOON)
    return [end, *([after] if after else []), row(EventType.LOGIN, **made)]


def guesses(count: int, *, every: float = 1, **fields: Any) -> list[Seen]:
    """Try unknown ids, some minutes apart."""
    made = {"reason": "unknown_token", "address": "198.51.100.9", "wide": ELSEWHERE, **fields}
    return [row(EventType.LOGIN, minutes=n * every, **{"token_id": f"x{n}", **made}) for n in range(count)]


def spray(
    names: Sequence[str], *, times: int = 1, address: str = "198.51.100.9", reason: str = "wrong_credentials"
) -> list[Seen]:
    """Try a wrong password for each name."""
    refused: dict[str, Any] = {"reason": reason, "address": address, "wide": ELSEWHERE, "events": times}
    return [row(EventType.LOGIN, principal=name, **refused) for name in names]


def password_thief(name: str = "User:etl", **fields: Any) -> Seen:
    """Log in with a job's password from another network, with another program."""
    made: dict[str, Any] = {"wide": ELSEWHERE, "address": "198.51.100.7", "software": "kcat", "client": "rdkafka"}
    return row(EventType.LOGIN, principal=name, mechanism="GSSAPI", **made | fields)


def wrong_secrets(count: int, **fields: Any) -> list[Seen]:
    """Try wrong passwords of a job, each from another address; with a token id and an owner, wrong HMACs."""
    made: dict[str, Any] = {"reason": "wrong_credentials", "wide": ELSEWHERE, **fields}
    if "token_id" not in made:
        made.setdefault("principal", "User:etl")
    return [row(EventType.LOGIN, minutes=n, **{"address": f"198.51.100.{n}", **made}) for n in range(count)]


def granted(to: str = "User:anna", minutes: float = -30) -> Seen:
    """Allow a principal to create tokens for a job."""
    acl = f"ALLOW CreateTokens of LITERAL User:'User:etl' to {to} from *"
    return row(EventType.ACL_CREATED, minutes=minutes, principal="User:ops", acl=acl, wide=OFFICE)


def made(owner: str, token_id: str, **fields: Any) -> Seen:
    """Create a token for oneself."""
    return row(
        EventType.TOKEN_CREATED,
        **{"principal": owner, "owner": owner, "requester": owner, "token_id": token_id} | fields,
    )


def for_another(by: str = "User:anna") -> Seen:
    """Create a token for a job."""
    return row(EventType.TOKEN_CREATED, principal=by, owner="User:etl", requester=by, token_id="t-new")


def described(by: str, count: int = 40) -> Seen:
    """Describe tokens."""
    return row(EventType.TOKENS_DESCRIBED, principal=by, described=count)


def by_mechanism(name: str, mechanism: str, **fields: Any) -> Seen:
    """Log in without a token."""
    return row(EventType.LOGIN, principal=name, mechanism=mechanism, **fields)


def changed(acl: str | None = None, **fields: Any) -> Seen:
    """Have the operator make an ACL, or change a SCRAM user."""
    if acl is None:
        return row(EventType.SCRAM_USER_CHANGED, **{"principal": "User:ops", "user": "backup", "wide": OFFICE} | fields)
    return row(EventType.ACL_CREATED, **{"principal": "User:ops", "acl": acl, "wide": OFFICE} | fields)


ROTATION: Final = row(EventType.KEYS_CHANGED, minutes=-60)


def refused_by_token(kind: EventType) -> Seen:
    """Make a request of a job that came with a token, and may not do that."""
    reason = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    return row(kind, reason=reason, principal="User:etl", owner="User:etl")
