"""`python -m benchmarks.detection`: write a company's events."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.detection.company.company import CompanyPlan, write_company


@click.group()
def main() -> None:
    """Judge the detection of misused tokens on data that no rule was made with."""


@main.command()
@click.option("--seed", type=int, required=True, help="Which company.")
@click.option("--days", type=click.IntRange(2), default=CompanyPlan.days, show_default=True)
@click.option(
    "--events", type=click.IntRange(100), default=CompanyPlan.events, show_default=True, help="About how many."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new directory.")
def company(*, seed: int, days: int, events: int, out: Path) -> None:
    """Write the events of a company to OUT/events, and what is true of them to OUT/truth.jsonl."""
    stories = write_company(out, CompanyPlan(seed, days=days, events=events))
    incidents = [each for each in stories if each.incident]
    visible = sum(each.visible for each in incidents)
    click.echo(f"{len(incidents)} incidents, {visible} of them visible; {len(stories) - len(incidents)} look-alikes")


if __name__ == "__main__":
    main()
