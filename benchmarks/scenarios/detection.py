"""How good the report's findings are, on months that no rule was made with.

The report runs as a user runs it (`kafka-dt pipeline ingest --once`, `report`) on whole companies of two generators.
The first (`kafka-dt pipeline generate`) was written beside the rules. The second (`benchmarks/detection/company`) was
written by an author who did not know the rules; it also has honest events that look like theft. In months with swapped
owners, the clients of two owners use each other's tokens from a moment on, so no author designed these incidents. The
seeds serve this judgement alone.

A finding is right if it is about an incident: about the same token, address or owner, at a time in common; several
right findings about one incident count as one, and each other finding is wrong. *Precision* is the share of right
findings, *recall* the share of the visible incidents that are found. An incident is visible if its events differ at all
from what the owner and owners of its kind do. Figures are the median of the months and, in parentheses, the smallest
and the largest. The rows of kinds of incidents, and the figures of single signs, count all months together.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.detection.by_sign import subject_of
from benchmarks.detection.judging import Judgement
from benchmarks.detection.months import HELD_OUT, MONTHS, Month
from benchmarks.detection.running import judged
from benchmarks.ledger import Ledger
from benchmarks.metrics import HIGH_PRECISION, PRECISION, RECALL
from benchmarks.results import Case

TITLE: Final = "Detection on data that no rule was made with"
COMPARED: Final = RECALL
AXIS: Final = ""
ALONE: Final = True
"""There is no server in it."""


@dataclass(frozen=True, slots=True)
class Incidents:
    """Incidents of one kind, those that one sign finds, or all."""

    name: str


ALL: Final = Incidents("all incidents")


def run(ledger: Ledger) -> None:
    """Judge the report on months of each kind, one for each seed."""
    seeds = HELD_OUT[: ledger.plan.judged_seeds]
    for month in MONTHS:
        record(ledger, month, [_judge(ledger, month, seed) for seed in seeds])


def record(ledger: Ledger, month: Month, judgements: Sequence[Judgement]) -> None:
    """Note what came out for each seed, and for each kind of incident and each sign over all of them."""
    visible: Counter[str] = Counter()
    found: Counter[str] = Counter()
    signs: dict[str, Counter[str]] = {}
    for number, judgement in enumerate(judgements, start=1):
        ledger.record(Case(month.name), ALL, number, _values(judgement))
        for kind, (many, seen) in judgement.by_kind().items():
            visible[kind] += many
            found[kind] += seen
        for kind, (all_found, seen, wrong) in judgement.by_rule().items():
            signs.setdefault(kind, Counter()).update(all=all_found, found=seen, wrong=wrong)
    for kind, many in sorted(visible.items()):
        values = {"visible": many, "found": found[kind], RECALL: found[kind] / many}
        ledger.record(Case(month.name), Incidents(kind), 1, values)
    for kind, counts in sorted(signs.items()):
        values = {
            "found": counts["found"],
            "wrong": counts["wrong"],
            PRECISION: counts["all"] / (counts["all"] + counts["wrong"]),
            RECALL: counts["found"] / visible.total(),
        }
        ledger.record(Case(month.name), Incidents(subject_of(kind)), 1, values)


def _judge(ledger: Ledger, month: Month, seed: int) -> Judgement:
    name = month.name.replace(", ", "-").replace(" ", "-")
    folder = ledger.folder / f"{name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with ledger.console.status(f"{month.name}, seed {seed}"):
        month.write(folder, seed, ledger.plan.judged_events)
        judgement = judged(folder)
    (folder / "judgement.json").rename(ledger.folder / f"judgement-{name}-{seed}.json")
    shutil.rmtree(folder)
    return judgement


def _values(judgement: Judgement) -> Mapping[str, float]:
    shares = {
        PRECISION: judgement.precision,
        RECALL: judgement.recall,
        HIGH_PRECISION: judgement.high_precision,
    }
    counts = {
        "visible": sum(each.visible for each in judgement.incidents),
        "found": sum(each.visible and each.name in judgement.found for each in judgement.incidents),
        "wrong": len(judgement.wrong),
    }
    return counts | {name: share for name, share in shares.items() if share is not None}
