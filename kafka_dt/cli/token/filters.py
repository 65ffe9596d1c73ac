"""The options that say which tokens are meant to end, and the question whether all of them are.

@click.command()
@filter_options
@confirmed_option
def command(*, selected: TokenFilter, confirmed: bool) -> None:
    if not confirmed:
        confirm(selected)
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import click

from kafka_dt.bulk import TokenFilter
from kafka_dt.tokens import InvalidPrincipal, Principal

_PLAUSIBLE_MS: Final = 10**12
"""September 2001; a smaller number is a date without its hyphens, or seconds."""


class _Principal(click.ParamType[str]):
    """A principal, as it stands in a token."""

    name = "principal"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(Principal.parse(value))
        except InvalidPrincipal:
            self.fail(f"{value!r} has no type: write User:{value}", param, ctx)


class _Instant(click.ParamType[int]):
    """An instant: ISO 8601, in UTC where it does not say, or milliseconds since 1970."""

    name = "instant"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int) or value.isdecimal():
            if int(value) < _PLAUSIBLE_MS:
                self.fail(
                    f"{value} milliseconds since 1970 are before any token: write a date like 2026-11-21, and a number "
                    "in milliseconds.",
                    param,
                    ctx,
                )
            return int(value)
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is neither ISO 8601 (2026-11-21T08:00:00Z) nor milliseconds since 1970.", param, ctx)
        instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1000)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--owner`, `--renewer` and `--issued-before`: the argument `selected`, a `TokenFilter`."""

    @functools.wraps(command)
    def filtered(
        *, owners: tuple[str, ...], renewers: tuple[str, ...], issued_before_ms: int | None, **others: object
    ) -> None:
        command(selected=TokenFilter(frozenset(owners), frozenset(renewers), issued_before_ms), **others)

    options: tuple[Callable[..., Any], ...] = (
        click.option(
            "--issued-before",
            "issued_before_ms",
            type=_Instant(),
            metavar="TIME",
            help="Only tokens issued before this time: ISO 8601 (UTC unless it says otherwise), or milliseconds since "
            "1970.",
        ),
        click.option(
            "--renewer",
            "renewers",
            multiple=True,
            type=_Principal(),
            metavar="User:NAME",
            help="Only tokens that this principal is a renewer of; may be given several times.",
        ),
        click.option(
            "--owner",
            "owners",
            multiple=True,
            type=_Principal(),
            metavar="User:NAME",
            help="Only tokens that this principal owns; may be given several times.",
        ),
    )
    for option in options:
        filtered = option(filtered)
    return filtered


confirmed_option: Final = click.option(
    "--all", "--yes", "confirmed", is_flag=True, help="End every token if there is no filter, without a question."
)
"""Adds `--all`: the argument `confirmed`."""


def confirm(selected: TokenFilter, *, unreadable: bool = False) -> None:
    """Ask whether every token is meant, if that is what a filter says, or every token that no key opens.

    Args:
        selected: which tokens end.
        unreadable: whether those end that no key opens; without a filter no others do.

    Raises:
        click.UsageError: there is no terminal to ask on.
        click.Abort: the user says no.
    """
    if unreadable:
        question = "This ends every token that no secret key of these settings can read. Continue?"
        advice = "This would end every token that no secret key of these settings can read: say --yes."
    elif selected.selects_all:
        question = "This ends every token of every owner. Continue?"
        advice = "Without --owner, --renewer or --issued-before this would end every token: say --all."
    else:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(advice)
    click.confirm(question, abort=True, err=True)
