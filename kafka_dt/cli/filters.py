"""Which tokens a command shows or ends: the filters, the question before they end, and the summary.

@click.command()
@filter_options
def command(*, selected: TokenFilter) -> None:
    confirm_selection(selected)
    ...
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk import NOT_READABLE, TokenFilter, ZnodeResult
from kafka_dt.cli.bulk_run import BulkRun
from kafka_dt.cli.node_options import now_ms
from kafka_dt.cli.options import PrincipalType, confirm, together
from kafka_dt.cli.output import counted, printable
from kafka_dt.cli.tables import iso_utc

if TYPE_CHECKING:
    from kafka_dt.cli.output import Output

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLAUSIBLE_MS: Final = 10**12
"""September 2001; a smaller number is a date without its hyphens, or seconds."""
_OWNERS_SHOWN: Final = 20
_AGE: Final = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[dhm])")
_UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}


class InstantType(click.ParamType[int]):
    """An instant: ISO 8601, in UTC where it does not say, or milliseconds since 1970, or an age such as 7d."""

    name = "instant"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds since 1970, between the years 1 and 9999."""
        is_number = isinstance(value, int) or value.isdecimal()
        try:
            if age := _AGE.fullmatch(str(value)):
                instant_ms = now_ms() - int(age["number"]) * _UNITS_MS[age["unit"]]
            else:
                instant_ms = int(value) if is_number else _milliseconds(str(value))
            _ = EPOCH + timedelta(milliseconds=instant_ms)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is neither ISO 8601 (2026-11-21T08:00:00Z), nor an age (7d, 12h, 30m), nor milliseconds "
                "since 1970.",
                param,
                ctx,
            )
        if is_number and instant_ms < _PLAUSIBLE_MS:
            self.fail(
                f"{value} milliseconds since 1970 are before any token: write a date like 2026-11-21, and a number "
                "in milliseconds.",
                param,
                ctx,
            )
        return instant_ms


_filters: Final = together(
    click.option(
        "--owner",
        "--owner-principal",
        "owners",
        multiple=True,
        type=PrincipalType(),
        metavar="User:NAME",
        help="Only tokens that this principal owns; may be given several times.",
    ),
    click.option(
        "--renewer",
        "--renewer-principal",
        "renewers",
        multiple=True,
        type=PrincipalType(),
        metavar="User:NAME",
        help="Only tokens that this principal is a renewer of; may be given several times.",
    ),
    click.option(
        "--issued-before",
        "issued_before_ms",
        type=InstantType(),
        metavar="TIME",
        help="Only tokens issued before this time: ISO 8601 (UTC unless it says otherwise), an age (7d, 12h, 30m: so "
        "long ago), or milliseconds since 1970.",
    ),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--owner`, `--renewer` and `--issued-before`: the argument `selected`, a `TokenFilter`."""

    @functools.wraps(command)
    def filtered(
        *, owners: tuple[str, ...], renewers: tuple[str, ...], issued_before_ms: int | None, **others: object
    ) -> None:
        command(selected=TokenFilter(frozenset(owners), frozenset(renewers), issued_before_ms), **others)

    decorated: Callable[..., None] = _filters(filtered)
    return decorated


all_option: Final = click.option(
    "--all", "everything", is_flag=True, help="End every token, without a question; not with a filter."
)
"""Adds `--all`: the argument `everything`."""


def confirm_selection(
    selected: TokenFilter, *, everything: bool, dry_run: bool, unreadable: bool = False, confirmed: bool = False
) -> None:
    """Ask before the tokens end that a filter selects, unless the command line says that all end, or none.

    selected: which readable tokens end
    everything: whether the command line says `--all`
    dry_run: whether none end
    unreadable: whether the tokens end that are not readable; without a filter they end alone
    confirmed: whether the command line says yes. It cannot mean every token: a script whose filters are empty by
        mistake says yes as well.

    Raises:
        click.UsageError: `--all` comes with a filter, or there is no terminal to ask on.
    """
    if everything and not selected.selects_all:
        raise click.UsageError(
            "--all means every token of every owner: with --owner, --renewer or --issued-before say --yes instead."
        )
    if everything or dry_run:
        return
    if selected.selects_all and not unreadable:
        refusal = "Without --owner, --renewer or --issued-before this would end every token: say --all."
        if confirmed:
            raise click.UsageError(refusal)
        confirm("This ends every token of every owner. Continue?", refusal)
    elif not confirmed:
        of_filter = [] if selected.selects_all else [f"every token {_words(selected)}"]
        unread = ["every token that no secret key of these settings can read"] if unreadable else []
        ends = " and ".join(of_filter + unread)
        confirm(
            f"This ends {ends} (--dry-run shows which). Continue?", f"This would end {ends}: say --yes or --dry-run."
        )


def _words(selected: TokenFilter) -> str:
    """Say what a filter selects."""
    words = []
    if selected.owners:
        words.append(f"of {printable(' or '.join(sorted(selected.owners)))}")
    if selected.renewers:
        words.append(f"with the renewer {printable(' or '.join(sorted(selected.renewers)))}")
    if selected.issued_before_ms is not None:
        words.append(f"issued before {iso_utc(selected.issued_before_ms)}")
    return ", ".join(words)


class ExpiryRun(BulkRun):
    """A run that ends tokens, in these words, with a count for each owner."""

    def __init__(self, *, dry_run: bool) -> None:
        title = "Looking at tokens" if dry_run else "Ending tokens"
        words = {
            ZnodeResult.CHANGED: "ended",
            ZnodeResult.UNCHANGED: "not meant",
            ZnodeResult.GONE: "gone",
            ZnodeResult.FAILED: "failed",
        }
        super().__init__(title, dry_run=dry_run, words=words, would="would end")
        self.by_owner: Counter[str] = Counter()
        """How many tokens of each owner ended."""
        self.not_readable = 0
        """How many tokens were left because the filters cannot be applied to them."""
        self.ended_unread = 0
        """How many tokens ended that were not readable."""
        self.token_ids: list[str] | None = None
        """The tokens that ended, for the JSON; None = it does not name them."""

    def write(self, output: Output) -> None:
        """Print which tokens ended."""
        owners = self.by_owner.most_common()
        more: dict[str, object] = {
            "byOwner": dict(owners),
            "notReadable": self.not_readable,
            "endedUnread": self.ended_unread,
        }
        if self.token_ids is not None:
            more["tokenIds"] = self.token_ids
        lines = [f"{printable(owner)}: {count}" for owner, count in owners[:_OWNERS_SHOWN]]
        if len(owners) > _OWNERS_SHOWN:
            lines.append(f"({len(owners) - _OWNERS_SHOWN} more owners)")
        if self.ended_unread:
            lines.append(f"not readable: {self.ended_unread}")
        self.write_summary(output, more, lines, {NOT_READABLE: self.not_readable} if self.not_readable else {})
        if self.not_readable:
            left = counted(self.not_readable, "token")
            self.tell(f"Not readable, so left alone: {left}, meant or not; kafka-dt keys verify says why")
            self.tell("kafka-dt token revoke --unreadable ends them")


def _milliseconds(text: str) -> int:
    instant = datetime.fromisoformat(text)
    return round((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() * 1000)
