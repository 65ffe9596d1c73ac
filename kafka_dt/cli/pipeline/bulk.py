"""`kafka-dt pipeline seal|unseal|rotate|verify|expire`: work on every token, distributed over Spark's executors.

They do what `kafka-dt keys seal|unseal|verify` and `token expire-all` do, with the settings of a node, for so many
tokens that one machine takes too long. `rotate` is what is left to do at scale after `kafka-dt keys rotate`: what older
keys have sealed is sealed with the current one, and what is plain stays plain. `keys retire` finds its work done then.

Executors look the secret keys up for themselves, so they have to be `file:` or `env:` in the configuration. The changes
of a second are bounded (`--rate`), for all executors together.

Limits: what a key of tokens means for their HMACs is not changed by sealing; see docs/how-to/change-keys.md.

Source: KIP-395, "Future work"; kafka_dt.pipeline.bulk.jobs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from kafka_dt.bulk.filters import TokenFilter
from kafka_dt.cli.bulk_run import BulkRun
from kafka_dt.cli.keys.bulk import VERIFIED
from kafka_dt.cli.node_options import node_options
from kafka_dt.cli.pipeline.bulk_work import Given, Work
from kafka_dt.cli.pipeline.session import session_options
from kafka_dt.cli.token.expire_all import expiry_run
from kafka_dt.cli.token.filters import confirm, confirmed_option, filter_options
from kafka_dt.pipeline.bulk.job import CHANGES_A_SECOND, JobKind


def _job_options(*, writes: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add what every command is told, as the argument `given`, and where it writes `--dry-run`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_given(**arguments: Any) -> None:
            told = {name: arguments.pop(name, None) for name in Given.__slots__}
            command(given=Given(**told), **arguments)

        decorated: Callable[..., None] = session_options(with_given)
        for option in (_parallelism, _rate, _dry_run) if writes else (_parallelism,):
            decorated = option(decorated)
        return node_options(decorated)

    return decorate


_parallelism = click.option(
    "--parallelism",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many partitions are worked on at the same time. [default: as many as the executors have cores]",
)
_rate = click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=CHANGES_A_SECOND,
    show_default=True,
    metavar="N",
    help="How many tokens are changed in a second at most, by all executors together; where brokers have to hear of "
    "the changes, no more than they take in.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Only count what would be changed.")


@click.command()
@_job_options(writes=True)
def seal(*, given: Given, dry_run: bool) -> None:
    """Seal every token in ZooKeeper with the current key.

    What is sealed with an older key is sealed again. Brokers cannot read sealed tokens.
    """
    Work(BulkRun("Sealing", dry_run=dry_run), given, JobKind.SEAL, dry_run=dry_run).do()


@click.command()
@_job_options(writes=True)
def unseal(*, given: Given, dry_run: bool) -> None:
    """Write every token in ZooKeeper plain, as brokers do, and tell them."""
    Work(BulkRun("Unsealing", dry_run=dry_run), given, JobKind.UNSEAL, dry_run=dry_run).do()


@click.command()
@_job_options(writes=True)
def rotate(*, given: Given, dry_run: bool) -> None:
    """Seal with the current key what older keys have sealed.

    For after `kafka-dt keys rotate`, which gives all nodes a new key. Plain tokens stay plain. Then
    `kafka-dt keys retire` takes the older key away, when the tokens that it made have ended.
    """
    run = BulkRun("Sealing again", dry_run=dry_run)
    Work(run, given, JobKind.ROTATE, dry_run=dry_run).do()


@click.command()
@_job_options(writes=False)
def verify(*, given: Given) -> None:
    """Check every token in ZooKeeper: MAC, JSON, name, key and times."""
    Work(BulkRun("Verifying", words=VERIFIED), given, JobKind.VERIFY).do()


@click.command()
@_job_options(writes=True)
@filter_options
@confirmed_option
def expire(*, given: Given, selected: TokenFilter, dry_run: bool, confirmed: bool) -> None:
    """End all tokens, or those of an owner, of a renewer, or issued before a time.

    Several owners, or renewers, mean any of them; different filters must all hold. A token that is not readable
    belongs to nobody that a filter could name: with a filter it is left and told of, without one it has failed.
    """
    if not (dry_run or confirmed):
        confirm(selected)
    Work(expiry_run(dry_run=dry_run), given, JobKind.EXPIRE, selected=selected, dry_run=dry_run).do()
