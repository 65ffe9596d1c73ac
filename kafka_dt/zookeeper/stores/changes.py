"""Follow sequential change znodes, such as those below `/delegation_token/token_changes`.

A broker lists all children whenever one is added. `ChangeFollower` never lists them: ZooKeeper numbers the children of
a parent without gaps (also when a multi fails or children are removed), and the parent's state tells how many have been
made. So it reads exactly the new ones by name, and waits with a watch on the name of the next. A number that should be
there and is not was purged before we came: then everything is compared, as also when the session is a new one or the
parent was made anew.

With a `Staleness` it also proves, as often as that asks for it, that it has missed nothing: it looks behind a write
that needs a quorum, which no server that is cut off from the others can answer (`client.barrier`). Then a new session
reads the changes that it has missed, if none of them is gone, and everything is compared beside the proofs. That finds
what is written without a change znode, such as tokens that were sealed again, and may take longer than proofs can wait.

Limit: after 2^31 changes ZooKeeper's numbers turn negative. A follower that has seen it coming goes on, one started
afterwards compares everything at each change; a broker stops following there.

Source: kafka.common.ZkNodeChangeNotificationListener, org.apache.zookeeper.server.PrepRequestProcessor (the numbers),
org.apache.zookeeper.server.DataNode.copyStat (`cversion` counts children made and removed).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from kafka_dt.tokens.sharing import SharedRun
from kafka_dt.zookeeper.connection.reads import Reads
from kafka_dt.zookeeper.connection.session import ConnectionState
from kafka_dt.zookeeper.errors import (
    DeniedByAcl,
    MultiFailed,
    NoNode,
    ZooKeeperConnectionLost,
    ZooKeeperError,
)
from kafka_dt.zookeeper.stores.change_purger import ChangePurger, PurgeLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from kafka_dt.tokens.staleness import Staleness
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Stat, Znode

_LOG = logging.getLogger(__name__)

PAUSE_S = 0.05
RETRY_S = 1.0
CLOCK_CHECK_S = 1.0
"""How often the clocks are looked at: the event loop's own may stand still while time passes."""
BATCH = 1000
NUMBERS = 2**31


class ChangeFollower:
    """Reports the changes announced below one parent.

    Args:
        client: the connection.
        parent: the znode whose children are the changes.
        prefix: path of a change without its number.
        read_changed: reads again what the data of change znodes name, and reports it.
        compare: reads and reports everything.
        now_ms: the wall clock, in milliseconds since 1970, for the purge.
        limits: when change znodes are purged.
        staleness: learns when it was proved that nothing was missed; None = it is not proved.
    """

    def __init__(
        self,
        client: ZooKeeperClient,
        parent: str,
        prefix: str,
        *,
        read_changed: Callable[[Collection[bytes]], Awaitable[object]],
        compare: Callable[[], Awaitable[None]],
        now_ms: Callable[[], int],
        limits: PurgeLimits | None = None,
        staleness: Staleness | None = None,
    ) -> None:
        self._client = client
        self._purger = ChangePurger(client, parent, limits or PurgeLimits(), now_ms)
        self._staleness = staleness
        self._reads = Reads(client)
        self._parent = parent
        self._prefix = prefix
        self._read_changed = read_changed
        self._compare = compare
        self._next: int | None = None
        self._place: tuple[int, int | None] | None = None
        self._watched: int | None = None
        self._own: set[int] = set()
        self._looks = SharedRun(self._look)
        self._proofs_asked = self._proofs_answered = 0
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._comparison_due = False
        self._comparing: asyncio.Task[None] | None = None
        client.add_listener(self._connection_changed)

    async def start(self) -> None:
        """Compare everything once, and follow and purge from then on; after a ZooKeeperError, call it again."""
        await self.catch_up()
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        self._purger.start()

    async def close(self) -> None:
        """Stop following and purging."""
        await _ended(self._task)
        await _ended(self._comparing)
        await self._purger.close()

    async def catch_up(self) -> None:
        """Return when everything acknowledged anywhere before the call has been reported, or raise ZooKeeperError."""
        await self._looks.join()

    async def prove(self) -> None:
        """Do as `catch_up`, and have a quorum confirm it: a leader that is cut off from the others cannot."""
        self._proofs_asked += 1
        await self._looks.join()

    def reported(self, path: str) -> None:
        """Do not read a change znode of this process, which has reported the change; purge it later.

        Args:
            path: as ZooKeeper named it, told as the answer that made it arrives.
        """
        self._own.add(int(path[path.rindex("_") + 1 :]) % NUMBERS)
        self._purger.add(path)

    def purge_later(self, path: str) -> None:
        """Take charge of a change znode of this process, which has not reported the change."""
        self._purger.add(path)

    def _connection_changed(self, state: ConnectionState) -> None:
        self._watched = None
        if state is ConnectionState.CONNECTED:
            self._woken.set()

    def _wake(self, _: object) -> None:
        self._watched = None
        self._woken.set()

    async def _follow(self) -> None:
        while True:
            await self._until_due()
            self._woken.clear()
            try:
                await self.catch_up()
            except ZooKeeperConnectionLost:
                pass  # the next connection wakes us
            except Exception:  # noqa: BLE001 - whatever it is: it must not end the following
                _LOG.exception("cannot follow the changes below %s, trying again", self._parent)
                await asyncio.sleep(RETRY_S)
                self._woken.set()
            await asyncio.sleep(PAUSE_S)  # under load many changes are one look

    async def _until_due(self) -> None:
        while not (self._woken.is_set() or self._due()):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._due_in_s()):
                    await self._woken.wait()

    def _due_in_s(self) -> float | None:
        """Return in how many seconds to look at the clocks again; None if no proof is needed."""
        if self._staleness is None or not self._client.connected:
            return None
        return min(CLOCK_CHECK_S, self._staleness.proof_due_in_s())

    def _due(self) -> Staleness | None:
        """Return the staleness to prove now; None if no proof is due."""
        if self._staleness is None or not self._client.connected:
            return None
        is_asked = self._proofs_asked > self._proofs_answered
        return self._staleness if is_asked or self._staleness.is_proof_due() else None

    async def _look(self) -> None:
        """Report the changes that are new, and leave a watch where the next one will be, or wake the follower.

        Under a flood of changes something new may always be there, so those who wait for this wait for one report.

        The watch is set before the changes are counted: one that is made and purged between the two would never be
        seen the other way round.
        """
        is_done = False
        while not is_done:
            due = self._due()
            is_done = await (self._report() if due is None else self._prove(due))

    async def _prove(self, staleness: Staleness) -> bool:
        """Do as `_report`, and note that no change is missing that was made before this began."""
        begun, asked = staleness.now(), self._proofs_asked
        barrier = self._client.barrier(self._parent)
        is_done = await self._report()
        if not (await _was_agreed(barrier) and is_done):
            return False
        staleness.proved(begun)
        self._proofs_answered = asked
        return True

    async def _report(self) -> bool:
        """Report the changes that are new now; False if there was no parent, which has just been made."""
        self._client.sync(self._parent)
        self._watch_next()
        stat = await self._client.exists(self._parent, watch=self._wake)
        if stat is None:
            await self._client.ensure_path(self._parent)
            return False
        place = (stat.created_zxid, self._client.session_id)
        made = (stat.child_version + stat.child_count) // 2 % NUMBERS
        if place != self._place or self._next is None or (made - self._next) % NUMBERS:
            await self._report_new(place, made)
            self._woken.set()  # the watch is still where these changes were made
        return True

    def _watch_next(self) -> None:
        """Have the next change wake us, unless the watch that an earlier look has left is still there."""
        if self._next is not None and self._next != self._watched:
            self._watched = self._next
            self._client.exists(self._path(self._next), watch=self._wake, arrived=self._watch_answered)

    def _watch_answered(self, _: Stat | None, error: ZooKeeperError | None) -> None:
        if error is not None:
            self._watched = None

    async def _report_new(self, place: tuple[int, int | None], made: int) -> None:
        """Report the changes before number `made`, by reading them or by comparing everything."""
        is_continued = place == self._place
        if self._staleness is not None and self._place is not None:
            is_continued = place[0] == self._place[0]  # the numbers go on in a new session
        first = self._next if is_continued else None
        following = made if first is None else first + (made - first) % NUMBERS
        if first is None:
            self._own.clear()  # they may be numbers below another parent, and hide changes of others below this one
        if first is None or not await self._read(range(first, following)):
            _LOG.info("reading everything that is announced below %s", self._parent)
            await self._compare()
        elif place != self._place:
            self._compare_beside()
        self._next, self._place = following, place
        self._own = {number for number in self._own if (number - following) % NUMBERS < NUMBERS // 2}

    def _compare_beside(self) -> None:
        """Compare everything, while changes are reported and proved."""
        self._comparison_due = True
        if self._comparing is None or self._comparing.done():
            self._comparing = asyncio.create_task(self._compare_until_done())

    async def _compare_until_done(self) -> None:
        while self._comparison_due:
            self._comparison_due = False
            try:
                await self._compare()
            except Exception as error:  # noqa: BLE001 - whatever it is: it must not end the comparing
                self._comparison_due = True
                if not isinstance(error, ZooKeeperConnectionLost):
                    _LOG.exception("cannot read everything that is announced below %s, trying again", self._parent)
                await asyncio.sleep(RETRY_S)

    async def _read(self, numbers: range) -> bool:
        """Read changes and their subjects; False if one of them is gone."""
        for begin in range(0, len(numbers), BATCH):
            foreign = [n for n in numbers[begin : begin + BATCH] if n % NUMBERS not in self._own]
            announced = await self._reads.read([self._path(n) for n in foreign], _announced)
            await self._read_changed({data: None for data in announced if data is not None})
            if None in announced:
                return False
        return True

    def _path(self, number: int) -> str:
        """Return the path of a change; ZooKeeper writes the number as a signed 32-bit integer of ten digits."""
        signed = (number + NUMBERS) % (2 * NUMBERS) - NUMBERS
        return f"{self._prefix}{signed:010d}"


async def _was_agreed(barrier: Awaitable[object]) -> bool:
    """Wait for a barrier; False if its znode was not there, and has just been made again."""
    try:
        await barrier
    except MultiFailed as refused:
        if isinstance(refused.cause, NoNode):
            return False
        raise
    return True


def _announced(_: str, found: Znode | ZooKeeperError) -> bytes | None:
    """Return the subject of a change; None if its znode is gone, or does not let us read it."""
    if isinstance(found, NoNode | DeniedByAcl):
        return None
    if isinstance(found, ZooKeeperError):
        raise found
    return found.data


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait for its end."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
