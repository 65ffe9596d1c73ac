"""Follow a parent of sequential change znodes, such as `/delegation_token/token_changes`.

A broker lists all children whenever one is added. This follower never lists them: ZooKeeper numbers the children of a
parent without gaps (also when a multi fails or children are removed), and the parent's state tells how many have been
made. So it reads exactly the new ones by name, and waits with a watch on the name of the next. Its cost follows
the changes, not how long change znodes are kept.

A number that should be there and is not was purged before we came: then everything is compared (`compare`), as also
when the session is a new one or the parent was made anew. A change of this process's own is announced with `own`, and
not read. Several changes of the same thing count once.

With a `Staleness` it also proves, as often as that asks for it, that it has missed nothing: it looks behind a write
that needs a quorum, which neither a follower nor a leader that is cut off from the others can answer
(`client.barrier`).

Limit: after 2^31 changes ZooKeeper's numbers turn negative. A follower that has seen it coming goes on, one started
afterwards compares everything at each change; a broker stops following there.

Source: kafka.common.ZkNodeChangeNotificationListener, org.apache.zookeeper.server.PrepRequestProcessor (the numbers),
org.apache.zookeeper.data.StatPersisted and org.apache.zookeeper.server.DataNode.copyStat (`cversion` counts children
made and removed).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from kafka_dt.tokens.sharing import SharedRun
from kafka_dt.zookeeper.connection.reads import Reads
from kafka_dt.zookeeper.connection.session import ConnectionState
from kafka_dt.zookeeper.errors import MultiFailed, NoNode, ZooKeeperConnectionLost, ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Znode
    from kafka_dt.zookeeper.proofs.staleness import Staleness

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
        staleness: Staleness | None = None,
    ) -> None:
        self._client = client
        self._staleness = staleness
        self._reads = Reads(client)
        self._parent = parent
        self._prefix = prefix
        self._read_changed = read_changed
        self._compare = compare
        self._next: int | None = None
        self._place: tuple[int, int | None] | None = None
        self._own: set[int] = set()
        self._looks = SharedRun(self._look)
        self._proofs_asked = self._proofs_answered = 0
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        client.add_listener(self._connection_changed)

    async def start(self) -> None:
        """Compare everything once, and follow from then on.

        Raises:
            ZooKeeperError: it did not work; it may be called again.
        """
        await self.catch_up()
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def catch_up(self) -> None:
        """Return when everything acknowledged anywhere before the call has been reported; callers share the work.

        Raises:
            ZooKeeperError: it could not be found out.
        """
        await self._looks.join()

    async def prove(self) -> None:
        """Do as `catch_up`, and have a quorum confirm it: a leader that is cut off from the others cannot.

        Raises:
            ZooKeeperError: it could not be found out.
        """
        self._proofs_asked += 1
        await self._looks.join()

    def own(self, path: str) -> None:
        """Take note that a change znode is of this process, which has reported the change.

        Args:
            path: as ZooKeeper named it, told as the answer that made it arrives.
        """
        self._own.add(int(path[path.rindex("_") + 1 :]) % NUMBERS)

    def _connection_changed(self, state: ConnectionState) -> None:
        if state is ConnectionState.CONNECTED:
            self._woken.set()

    def _wake(self, _: object) -> None:
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
        """Wait until there is something new, or the next proof is due."""
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
        """Report new changes until there are none, and leave a watch where the next change will be.

        The watch is set before the changes are counted: one that is made and purged between the two would never be
        seen the other way round.
        """
        up_to_date = False
        while not up_to_date:
            due = self._due()
            up_to_date = await (self._is_up_to_date() if due is None else self._prove(due))

    async def _prove(self, staleness: Staleness) -> bool:
        """Report the changes that were new when this began, and note that no older one is missing.

        Under a flood of changes something new may always be there: what was before the barrier has been reported.
        """
        begun, asked = staleness.now(), self._proofs_asked
        barrier = self._client.barrier(self._parent)
        up_to_date = await self._is_up_to_date()
        if not await _was_agreed(barrier):
            return False
        staleness.proved(begun)
        self._proofs_answered = asked
        return up_to_date

    async def _is_up_to_date(self) -> bool:
        """Ask whether there is something new; if so, report it."""
        self._client.sync(self._parent)
        if self._next is not None:
            self._client.exists(self._path(self._next), watch=self._wake)
        stat = await self._client.exists(self._parent, watch=self._wake)
        if stat is None:
            await self._client.ensure_path(self._parent)
            return False
        place = (stat.created_zxid, self._client.session_id)
        made = (stat.child_version + stat.child_count) // 2 % NUMBERS
        if place == self._place and self._next is not None and (made - self._next) % NUMBERS == 0:
            return True
        await self._report_new(place, made)
        return False

    async def _report_new(self, place: tuple[int, int | None], made: int) -> None:
        """Report the changes before number `made`, by reading them or by comparing everything."""
        first = self._next if place == self._place else None
        following = made if first is None else first + (made - first) % NUMBERS
        if first is None or not await self._read(range(first, following)):
            _LOG.info("reading everything that is announced below %s", self._parent)
            await self._compare()
        self._next, self._place = following, place
        self._own = {number for number in self._own if (number - following) % NUMBERS < NUMBERS // 2}

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
    """Return the subject of a change; None if its znode is gone."""
    if isinstance(found, NoNode):
        return None
    if isinstance(found, ZooKeeperError):
        raise found
    return found.data
