"""One line in the log when logins by token begin to be refused because the store is away, and one when that ends.

A login is refused for the store's sake in two cases: this worker has not met the token and cannot ask; or what it knows
is too old, and then no token logs in. An outage may begin as the first and become the second, which is said as well.
"""

from __future__ import annotations

import logging

from kafka_dt.tokens import StoreUnavailable

_LOG = logging.getLogger(__name__)


class TokenOutage:
    """The outage that there is, if there is one."""

    __slots__ = ("_all_tokens", "_refused")

    def __init__(self) -> None:
        self._refused = 0
        self._all_tokens = False

    @property
    def lasts(self) -> bool:
        """Whether a login has been refused, and no end has been noted since."""
        return self._refused > 0

    def refused(self, error: StoreUnavailable, *, all_tokens: bool) -> None:
        """Note that a login was refused.

        Args:
            error: why the store could not be asked.
            all_tokens: whether the tokens that this worker knows are refused as well.
        """
        if all_tokens and not self._all_tokens:
            _LOG.warning("No token can log in until the store can be asked: it may have been revoked. %s", error)
        elif not self._refused:
            _LOG.warning("Tokens that this worker has not met yet cannot log in; those that it knows can. %s", error)
        self._refused += 1
        self._all_tokens |= all_tokens

    def ended(self) -> None:
        """Note that the store can be asked again."""
        if self._refused:
            _LOG.warning("All tokens can log in again; %d logins were refused meanwhile", self._refused)
        self._refused = 0
        self._all_tokens = False
