"""Token ids as arguments of commands."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from kafka_dt.cli.token.ids import TakesTokenIds

HYPHEN = "-v0f6A8uRgW23eVbJOQheQ"
HYPHENS = "--0f6A8uRgW23eVbJOQheA"
OTHER = "W23eVbJOQheJ-v0f6A8uRg"


@click.command(cls=TakesTokenIds)
@click.argument("ids", nargs=-1)
@click.option("--dry-run", is_flag=True)
@click.option("--a-flag-of-22-charactQ", "long_flag", is_flag=True)
def command(*, ids: tuple[str, ...], dry_run: bool, long_flag: bool) -> None:
    click.echo(f"{sorted(ids)} {dry_run} {long_flag}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([HYPHEN], f"{[HYPHEN]} False False"),
        ([HYPHEN, "--dry-run", OTHER, HYPHENS], f"{sorted([HYPHEN, HYPHENS, OTHER])} True False"),
        (["--dry-run", "--", HYPHEN], f"{[HYPHEN]} True False"),
        (["--a-flag-of-22-charactQ", OTHER], f"{[OTHER]} False True"),
    ],
)
def test_an_id_may_begin_with_a_hyphen(words: list[str], told: str) -> None:
    assert CliRunner().invoke(command, words).output == f"{told}\n"


def test_a_mistyped_option_is_still_an_error() -> None:
    assert CliRunner().invoke(command, ["--dry-rum", OTHER]).exit_code == 2
