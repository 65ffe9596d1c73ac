"""A scenario cut into parts that can be made anywhere, in any order: one worker's share of the owners, one day.

    for part in parts(scenario, planted):
        for node, events in part.events():
            ...

An owner's clients always meet the same worker of whichever node they connect to; so a part has one file's worth of each
node, in the order of time, and needs nothing of the other parts. Its ids and connections are named after the part, as
if every worker were started anew each midnight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kafka_dt.audit import AuditEvent
from kafka_dt.pipeline.generator.administration import administration, keys_changed
from kafka_dt.pipeline.generator.drafts import Desk, Draft
from kafka_dt.pipeline.generator.mishaps import mishaps
from kafka_dt.pipeline.generator.recording import Day, record, restarts
from kafka_dt.pipeline.generator.scenario import DAY_MS, Scenario
from kafka_dt.pipeline.generator.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_dt.pipeline.generator.incidents import Planted

NODE_NAMES: Final = "kafka-dt-{}"


@dataclass(frozen=True, slots=True)
class Part:
    """A worker's share of a day."""

    scenario: Scenario
    day: int
    worker: int
    planted: tuple[Draft, ...]
    """What is planted into it."""

    def events(self) -> Iterator[tuple[str, Iterator[AuditEvent]]]:
        """Make its events: for each node the name, and what this worker of it has written down, in order."""
        drafts = sorted(self._drafts(), key=attrgetter("node", "time_ms"))
        begin = 0
        for node in range(self.scenario.nodes):
            end = begin
            while end < len(drafts) and drafts[end].node == node:
                end += 1
            if begin < end:
                yield NODE_NAMES.format(node + 1), self._finished(node, drafts[begin:end])
            begin = end

    def _drafts(self) -> Iterator[Draft]:
        scenario, shares = self.scenario, Shares(self.scenario)
        begin_ms = scenario.begin_ms(self.day)
        todays = [each for each in restarts(scenario) if begin_ms <= each.at_ms < begin_ms + DAY_MS]
        day = Day(scenario, self.day, todays)
        for owner in shares.owners:
            if owner.number % scenario.workers == self.worker:
                desk = Desk(scenario, "owner", owner.number, self.day)
                lives = list(shares.lives(owner, self.day))
                yield from record(day, owner, lives, shares.events(owner, self.day), desk)
                yield from mishaps(day, owner, shares, Desk(scenario, "mishaps", owner.number, self.day))
        if self.worker == 0:
            yield from administration(day, shares.owners, Desk(scenario, "administration", self.day))
        yield from keys_changed(day, Desk(scenario, "keys", self.day, self.worker))
        yield from self.planted

    def _finished(self, node: int, drafts: Iterable[Draft]) -> Iterator[AuditEvent]:
        instance = f"{self.scenario.chance('instance', node, self.worker, self.day).getrandbits(64):016x}"
        name = f"{NODE_NAMES.format(node + 1)}-{self.worker}"
        for number, draft in enumerate(drafts, start=1):
            yield AuditEvent(
                id=f"{instance}-{number}",
                time=draft.time_ms,
                node=name,
                client_port=draft.port,
                connection=draft.connection,
                **draft.shared,
            )


def parts(scenario: Scenario, planted: Sequence[Planted]) -> list[Part]:
    """Cut a scenario into its parts, in the order of time."""
    by_part: dict[tuple[int, int], list[Draft]] = {}
    for each in planted:
        worker = each.owner.number % scenario.workers if each.owner else 0
        for draft in each.drafts:
            day = (draft.time_ms - scenario.start_ms) // DAY_MS
            by_part.setdefault((day, worker), []).append(draft)
    return [
        Part(scenario, day, worker, tuple(by_part.get((day, worker), ())))
        for day in range(scenario.days)
        for worker in range(scenario.workers)
    ]
