"""When an answer of a broker has everything that was acknowledged before a moment.

Each broker answers from its own image of the metadata log, which may be old. The offset of the image and the high
watermark of the log, which the active controller tells, prove how old:

    proof = ImageProof(before)                # a LogEnd, asked for at some moment
    while not proof.passed_by(offset): ...    # asked for again and again, at one broker
    proof.confirmed_by(after)                 # a LogEnd, asked for now
    # if so, a describe that is sent to this broker now has every change that was acknowledged before that moment

A broker puts an image in place before all its caches have heard of it, and begins with an image only when the one
before has reached all of them. So the proof waits for an image that has the last record below the watermark, and then
for a further one. The record that makes the further image lies above the watermark: a broker that hears only of a
deposed controller does not get it.

Source: kafka.server.metadata.KRaftMetadataCache.features, org.apache.kafka.image.loader.MetadataLoader,
org.apache.kafka.raft.LeaderState (describeQuorum);
docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogEnd:
    """How far the metadata log is committed, as the controller tells that leads it."""

    leader_epoch: int
    high_watermark: int
    """The offset after the last committed record; negative while a controller that has just been elected has committed
    no record of its own, and so does not know it."""
    time_ms: int | None = None
    """The controller's clock, in milliseconds since 1970; None if it does not tell it."""


@dataclass(slots=True)
class ImageProof:
    """Waits until the image of one broker has moved past a watermark."""

    before: LogEnd
    """How far the log was committed when the proof began."""
    _reached: int | None = None
    """The offset of the first image that had all records below the watermark."""
    _passed: int | None = None
    """The offset of the image that came after it."""

    @property
    def can_be_made(self) -> bool:
        """Whether the controller knew how far the log was committed."""
        return self.before.high_watermark >= 0

    def passed_by(self, offset: int) -> bool:
        """Take note of the offset of the broker's image; says whether the image has moved past the watermark."""
        if self._reached is None:
            if offset >= self.before.high_watermark - 1:
                self._reached = offset
            return False
        self._passed = offset
        return offset > self._reached

    def confirmed_by(self, after: LogEnd) -> bool:
        """Say whether the controller that told the watermark was leading then, as what it tells now shows."""
        same = after.leader_epoch == self.before.leader_epoch
        return same and self._passed is not None and after.high_watermark > self._passed
