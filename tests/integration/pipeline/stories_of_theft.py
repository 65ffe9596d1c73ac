"""Four days in which tokens are stolen, and in which others do what only looks like it.

Each token is named for what happens to it. `FOUND` says what a report has to find, and so what it must not.

The days begin on Monday, 2 March 2026; the report is of Friday at midnight.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from kafka_dt.audit import EventType
from kafka_dt.pipeline.generator import IncidentKind
from tests.integration.pipeline.audit_story import Story

BEGIN: Final = datetime(2026, 3, 2, tzinfo=UTC)
END: Final = BEGIN + timedelta(days=4)
YARN: Final = "User:yarn"
HOSTILE: Final = "User:<img src=x onerror=alert(1)>\u202e</script>"
"""A name that would like to be more than one."""

ELSEWHERE: Final = "stolen-elsewhere"
OTHER_CLIENT: Final = "stolen-other-client"
FIRST_DAY: Final = "stolen-first-day"
MOVED_AND_CHANGED: Final = "stolen-moved"
TRIED_ELSEWHERE: Final = "revoked-tried-elsewhere"
TRIED_AT_HOME: Final = "revoked-tried-at-home"
NEW_RENEWER: Final = "renewed-by-new"
STRANGER: Final = "renewed-by-stranger"
GUESSER: Final = "198.51.100.50"
SLOW_GUESSER: Final = "198.51.102.51"
SCANNER: Final = "198.51.103.52"
"""Guesses as well, and the security team says that it may."""
GUESSING_NETWORK: Final = "198.51.101.0/24"

FOUND: Final = {
    (IncidentKind.STOLEN_TOKEN, ELSEWHERE),
    (IncidentKind.STOLEN_TOKEN, OTHER_CLIENT),
    (IncidentKind.STOLEN_TOKEN, FIRST_DAY),
    (IncidentKind.STOLEN_TOKEN, MOVED_AND_CHANGED),
    (IncidentKind.USE_AFTER_REVOCATION, TRIED_ELSEWHERE),
    (IncidentKind.UNKNOWN_ID_BURST, GUESSER),
    (IncidentKind.UNKNOWN_ID_BURST, SLOW_GUESSER),
    (IncidentKind.UNKNOWN_ID_BURST, GUESSING_NETWORK),
    (IncidentKind.FOREIGN_RENEWAL, NEW_RENEWER),
    (IncidentKind.FOREIGN_RENEWAL, STRANGER),
}


def at(day: int, hour: float = 0) -> datetime:
    """Give an instant of the story."""
    return BEGIN + timedelta(days=day, hours=hour)


def whole_story() -> Story:
    """Tell everything."""
    story = Story()
    for part in (_usual, _stolen, _looks_stolen, _revoked, _guesses, _renewals, _lists, _old):
        part(story)
    return story


def _usual(story: Story) -> None:
    """Alice's token: yarn renews it, its pods start again now and then, and are upgraded on the third day."""
    story.user_login("User:alice", at(0, 7.9), "10.0.1.5")
    story.token("usual", "User:alice", at(0, 8), renewers=[YARN], lives=timedelta(days=1))
    for day in range(4):
        pods = [f"10.0.1.{10 + day * 3 + pod}" for pod in range(3)]
        version = "3.9.1" if day < 2 else "4.0.0"
        name = f"etl-7f9c{day}b-x2k9{day}"
        began, ended = at(day, 8.5), at(day, 23)
        story.logins("usual", "User:alice", began, ended, pods, client_id=name, client_software_version=version)
        if day:
            story.renewal("usual", "User:alice", YARN, at(day, 3), lives=timedelta(days=1))


def _stolen(story: Story) -> None:
    for token_id, owner, home in (
        (ELSEWHERE, "User:bob", "10.0.2.7"),
        (OTHER_CLIENT, "User:carol", "10.0.3.7"),
        (MOVED_AND_CHANGED, "User:dan", "10.0.4.7"),
    ):
        story.token(token_id, owner, at(0, 6))
        until = at(2, 12) if token_id == MOVED_AND_CHANGED else END
        story.logins(token_id, owner, at(0, 7), until, [home])
    story.logins(ELSEWHERE, "User:bob", at(2, 13), at(2, 15), ["203.0.113.9"], every=timedelta(minutes=20))
    story.logins(
        OTHER_CLIENT,
        "User:carol",
        at(2, 9),
        at(2, 10),
        ["10.0.3.200"],
        client_id="rdkafka",
        client_software="librdkafka",
        client_software_version="2.4.0",
    )
    story.logins(
        MOVED_AND_CHANGED,
        "User:dan",
        at(2, 13),
        at(3),
        ["203.0.113.77"],
        client_id="rdkafka",
        client_software="librdkafka",
        client_software_version="2.4.0",
    )
    # Eve has been there for two days when her new token is used by a stranger within its first hours.
    story.token("before", "User:eve", at(0, 1))
    story.logins("before", "User:eve", at(0, 2), END, ["10.0.5.7"])
    story.token(FIRST_DAY, "User:eve", at(2, 8))
    story.logins(FIRST_DAY, "User:eve", at(2, 8.5), END, ["10.0.5.7"])
    story.logins(
        FIRST_DAY,
        "User:eve",
        at(2, 12),
        at(2, 13),
        ["198.51.103.5"],
        every=timedelta(minutes=30),
        client_id="rdkafka",
        client_software="librdkafka",
        client_software_version=None,
    )


def _looks_stolen(story: Story) -> None:
    story.token("moves", "User:frank", at(0, 6))
    story.logins("moves", "User:frank", at(0, 7), at(2), ["10.0.6.7"])
    story.logins("moves", "User:frank", at(2), END, ["10.60.6.7"])
    story.token("scales", "User:grace", at(0, 6))
    many = [f"10.7.{network}.{host}" for network in range(3) for host in range(10)]
    story.logins("scales", "User:grace", at(0, 7), END, many, every=timedelta(minutes=30))
    # Heidi's second token begins in a network to which her first one comes later.
    story.token("follows", "User:heidi", at(0, 6))
    story.token("leads", "User:heidi", at(1, 6))
    story.logins("follows", "User:heidi", at(0, 7), END, ["10.0.8.7"])
    story.logins("leads", "User:heidi", at(1, 7), END, ["10.80.8.7"])
    story.logins("follows", "User:heidi", at(2, 7), END, ["10.80.8.8"])


def _revoked(story: Story) -> None:
    for token_id in (TRIED_ELSEWHERE, TRIED_AT_HOME, "revoked-in-time"):
        story.token(token_id, "User:ivan", at(0, 6))
        story.logins(token_id, "User:ivan", at(0, 7), at(2, 6), ["10.0.9.7"])
        story.end(token_id, "User:ivan", at(2, 7))
    for minutes, token_id, address in (
        (30, TRIED_ELSEWHERE, "198.51.100.7"),
        (90, TRIED_ELSEWHERE, "198.51.100.7"),
        (45, TRIED_AT_HOME, "10.0.9.7"),
        (1, "revoked-in-time", "10.0.9.7"),
    ):
        story.login(token_id, "User:ivan", at(2, 7 + minutes / 60), address, reason="unknown_token")
    # Its end comes by age, and its job needs a while to hear of it.
    story.token("aged", "User:ivan", at(0, 6), lives=timedelta(days=1))
    story.logins("aged", "User:ivan", at(0, 7), at(1, 6), ["10.0.9.7"])
    story.login("aged", "User:ivan", at(1, 8), "10.0.9.7", reason="expired_token")
    # It was to end earlier, and was renewed after that.
    story.token("spared", "User:ivan", at(0, 6))
    story.tell(
        EventType.TOKEN_EXPIRED,
        at(0, 8),
        principal="User:ivan",
        token_id="spared",
        owner="User:ivan",
        expiry_time=int(at(0, 20).timestamp() * 1000),
    )
    story.renewal("spared", "User:ivan", "User:ivan", at(0, 10))
    story.logins("spared", "User:ivan", at(0, 7), END, ["10.0.9.7"])


def _guesses(story: Story) -> None:
    for number in range(15):
        story.guess(f"guess-{number:02}", at(1, 3) + timedelta(minutes=number), GUESSER)
        story.guess(f"shared-{number:02}", at(1, 5) + timedelta(minutes=number), f"198.51.101.{number + 1}")
        story.guess(f"scan-{number:02}", at(1, 7) + timedelta(minutes=number), SCANNER)
    for number in range(9):
        story.guess(f"slow-{number}", at(2, 6 + number), SLOW_GUESSER)
    for day in range(4):
        story.guess(f"typo-{day}", at(day, 11), "10.0.1.5")
    # The same wrong id again and again is a job, and no guess.
    for minute in range(40):
        story.guess("stale", at(2, 4) + timedelta(minutes=minute), "10.0.1.6")


def _renewals(story: Story) -> None:
    for token_id in (NEW_RENEWER, STRANGER, "renewed-in-turn"):
        story.token(token_id, "User:judy", at(0, 6), renewers=[YARN, "User:mallory"], lives=timedelta(days=1))
        story.logins(token_id, "User:judy", at(0, 7), END, ["10.0.10.7"])
    for hours in range(18, 96, 18):
        for token_id in (NEW_RENEWER, STRANGER, "renewed-in-turn"):
            by = "User:rm2" if token_id == "renewed-in-turn" and hours % 36 else YARN
            story.renewal(token_id, "User:judy", by, at(0, hours), lives=timedelta(days=1))
    story.renewal(NEW_RENEWER, "User:judy", "User:mallory", at(2, 13), address="198.51.100.9")
    story.renewal(
        STRANGER,
        "User:judy",
        "User:trent",
        at(2, 14),
        reason="DELEGATION_TOKEN_OWNER_MISMATCH",
        address="198.51.100.10",
    )


def _lists(story: Story) -> None:
    story.token("unused", "User:kim", at(1, 6), requester="User:portal")
    story.token("unused-and-gone", "User:kim", at(0, 6), requester="User:portal", lives=timedelta(days=1))
    story.token("unused-yet", "User:kim", at(3, 20), requester="User:portal")
    story.token("ends-soon", HOSTILE, at(3, 1), lives=timedelta(hours=24))
    story.logins("ends-soon", HOSTILE, at(3, 2), END, ["2001:db8:0:1::7"])
    story.token("ends-soon-unused", "User:kim", at(2, 1), lives=timedelta(hours=48))
    story.login("ends-soon-unused", "User:kim", at(2, 2), "10.0.11.7")
    story.token("ends-soon-idle", "User:kim", at(3, 1), lives=timedelta(hours=24))
    story.logins("ends-soon-idle", "User:kim", at(3, 2), at(3, 8), ["10.0.11.7"], every=timedelta(hours=1))
    # No client missed the tokens of the last nights.
    for night in range(4):
        story.token(f"nightly-{night}", "User:nina", at(night, 1), lives=timedelta(hours=24))
        story.logins(f"nightly-{night}", "User:nina", at(night, 2), at(night + 1), ["10.0.13.7"])
    story.token("ends-for-good", "User:kim", at(3, 1.5), lives=timedelta(hours=24), longest=timedelta(hours=24))
    story.logins("ends-for-good", "User:kim", at(3, 2), END, ["10.0.11.7"])


def _old(story: Story) -> None:
    """A token from before the first event, and refusals of all sorts."""
    story.logins("older", "User:lee", at(0, 1), END, ["10.0.12.7"], every=timedelta(hours=6))
    for reason in ("wrong_credentials", "unsupported_mechanism"):
        story.tell(EventType.LOGIN, at(1, 2), reason, "10.0.12.9", principal="User:lee", mechanism="X-<b>ODD</b>")
    story.tell(EventType.TOKEN_CREATED, at(1, 2), "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", principal="User:lee")
    story.tell(EventType.TOKENS_DESCRIBED, at(1, 3), principal="User:lee", count=1)
