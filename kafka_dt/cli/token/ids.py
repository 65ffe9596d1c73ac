"""Token ids as arguments: one in 64 begins with a hyphen, with which options begin as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafka_dt.tokens.lookup import has_token_id_form

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_OF_OPTIONS: Final = "--"


class TakesTokenIds(click.Command):
    """A command whose arguments are token ids."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take an argument that looks like a token id for one, whatever it begins with."""
        return super().parse_args(ctx, args if _END_OF_OPTIONS in args else self._ids_last(args))

    def _ids_last(self, args: Sequence[str]) -> list[str]:
        options = {name for parameter in self.params for name in parameter.opts}
        ids = [each for each in args if each.startswith("-") and has_token_id_form(each) and each not in options]
        return [*(each for each in args if each not in ids), _END_OF_OPTIONS, *ids] if ids else list(args)
