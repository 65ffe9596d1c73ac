"""`python -m benchmarks.detection`: months of events, swapped owners, and the judgement of what the report finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from benchmarks.detection.company.company import CompanyPlan, write_company
from benchmarks.detection.judging import Judgement
from benchmarks.detection.running import judged
from benchmarks.detection.swaps import swap_users
from benchmarks.detection.watching import watched

MONTH: Final = CompanyPlan(seed=0)
_out = click.option("--out", type=click.Path(path_type=Path), required=True, help="A new directory.")
_seed = click.option("--seed", type=int, required=True, help="Draws everything.")


@click.group()
def main() -> None:
    """Judge the detection of misused tokens on data that no rule was made with."""


@main.command()
@_seed
@_out
@click.option("--days", type=click.IntRange(2), default=MONTH.days, show_default=True)
@click.option("--events", type=click.IntRange(100), default=MONTH.events, show_default=True, help="About how many.")
def company(*, seed: int, out: Path, days: int, events: int) -> None:
    """Write the events of a company to OUT/events, and what is true of them to OUT/truth.jsonl."""
    stories = write_company(out, CompanyPlan(seed, days=days, events=events))
    incidents = [each for each in stories if each.incident]
    visible = sum(each.visible for each in incidents)
    click.echo(f"{len(incidents)} incidents, {visible} of them visible; {len(stories) - len(incidents)} look-alikes")


@main.command()
@_seed
@_out
@click.option(
    "--from", "source", type=click.Path(path_type=Path, exists=True), required=True, help="Has *.jsonl files."
)
@click.option("--pairs", type=click.IntRange(1), default=10, show_default=True, help="How many pairs of owners.")
def swap(*, seed: int, out: Path, source: Path, pairs: int) -> None:
    """Let owners' clients use each other's tokens from a moment on; the events may be recorded ones."""
    stories = swap_users(source, out, seed=seed, pairs=pairs)
    click.echo(f"{len(stories)} owners swapped, {sum(each.visible for each in stories)} of them visibly")


@main.command(name="judge")
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
def judge_folder(folder: Path) -> None:
    """Run the report on FOLDER/events, and compare what it finds with FOLDER/truth.jsonl."""
    _print(judged(folder))
    click.echo(f"stored in {folder / 'judgement.json'}")


@main.command(name="watch")
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
def watch_folder(folder: Path) -> None:
    """Run the rules of the watch over FOLDER/table, hour by hour, and compare what they find with the truth."""
    _print(watched(folder))


def _print(judgement: Judgement) -> None:
    console = Console()
    console.print(_kinds(judgement))
    console.print(_rules(judgement))
    for name in ("precision", "recall", "high_precision"):
        share = getattr(judgement, name)
        console.print(f"{name:16}{'nothing found' if share is None else f'{share:.2f}'}")


def _kinds(judgement: Judgement) -> Table:
    table = Table("kind of incident", "visible", "found")
    for kind, (visible, found) in judgement.by_kind().items():
        table.add_row(kind, str(visible), str(found))
    return table


def _rules(judgement: Judgement) -> Table:
    table = Table("kind of finding", "right", "wrong", "about")
    wrong = judgement.wrong_by_rule()
    for kind in sorted({*judgement.right, *wrong}):
        about = wrong.get(kind, Counter())
        texts = ", ".join(f"{name}: {number}" for name, number in about.most_common())
        table.add_row(kind, str(judgement.right[kind]), str(about.total()), texts)
    return table


if __name__ == "__main__":
    main()
