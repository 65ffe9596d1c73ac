"""Finding the token that a SCRAM login is by, while the client computes its proof.

    search = TokenSearch(subjects, mechanism, name)
    search.begin()                   # the challenge is on its way
    search.found()                   # the subject, or None: then
    await search.finish()
    search.abandon()                 # the client has gone

Source: DESIGN.md, "No oracle".
"""

from __future__ import annotations

import asyncio

from kafka_dt.identity.credentials.scram import ScramSubjects, Subject
from kafka_dt_protocol.sasl import ScramMechanism


class TokenSearch:
    """The search for one login.

    Args:
        subjects: finds them.
        mechanism: of the login.
        name: a text that may be a token id.
    """

    def __init__(self, subjects: ScramSubjects, mechanism: ScramMechanism, name: str) -> None:
        self._subjects = subjects
        self._mechanism = mechanism
        self._name = name
        self._found: Subject | None = None
        self._lookup: asyncio.Task[Subject] | None = None

    def found(self) -> Subject | None:
        """Give the subject if memory has all that it takes; None if `finish` is needed."""
        if self._found is None:
            self._found = self._subjects.find(self._mechanism, self._name)
        return self._found

    def begin(self) -> None:
        """Begin to ask the store, or to derive the credential, if memory does not have it."""
        if self.found() is None and self._lookup is None:
            lookup = self._subjects.lookup(self._mechanism, self._name)
            self._lookup = asyncio.get_running_loop().create_task(lookup)
            self._lookup.add_done_callback(_seen)

    async def finish(self) -> Subject:
        """Give the subject that memory did not have.

        Raises:
            StoreUnavailable: the store has to be asked and cannot be.
            TooMuchWaits: the token's credential cannot be derived now.
        """
        if self._lookup is not None:
            return await self._lookup
        return await self._subjects.lookup(self._mechanism, self._name)

    def abandon(self) -> None:
        """End what `begin` has begun."""
        if self._lookup is not None:
            self._lookup.cancel()


def _seen(task: asyncio.Task[Subject]) -> None:
    """Take note of how a task ended: no caller may ask for it, and asyncio would log that."""
    if not task.cancelled():
        task.exception()
