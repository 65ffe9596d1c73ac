"""Log clients in upstream with the tokens with which they logged in at the gateway.

That is possible where the tokens are those of the cluster itself (`kafka.dt.token.store=upstream`): the cluster sees
the owner, by the client's own token, and no second token is needed. The tokens that the node makes the HMACs of are
unknown there.

Source: KIP-48; docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_dt.client import Credentials
from kafka_dt.gateway.identities import NoIdentity, UpstreamLogin, require_user
from kafka_dt.gateway.owner_tokens import KNOWN_WITHIN_MS

if TYPE_CHECKING:
    from kafka_dt.tokens import CachedToken, Principal
    from kafka_dt_protocol.sasl import ScramMechanism


class OwnTokens:
    """Finds the upstream login of a client that has logged in with a token.

    Args:
        held: gives a token as this process knows it, None if it does not.
        mechanism: how tokens log in.
        now_ms: milliseconds since 1970; it should agree with the cluster's clocks within minutes.
    """

    def __init__(
        self,
        held: Callable[[str], CachedToken | None],
        mechanism: ScramMechanism,
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._held = held
        self._mechanism = mechanism
        self._now_ms = now_ms

    def login(self, principal: Principal, token_id: str) -> UpstreamLogin | None:
        """Return the login of a client; None if its token is not one of the cluster's.

        Args:
            principal: of the client.
            token_id: of the token that it logged in with, last.

        Raises:
            NoIdentity: the token has ended, or its owner is no user.
        """
        require_user(principal)
        found = self._held(token_id)
        if found is None:
            raise NoIdentity(principal, f"its token {token_id} has ended")
        if found.keyed:
            return None
        password = base64.b64encode(found.delegation.hmac).decode()
        credentials = Credentials(self._mechanism, token_id, password, token_auth=True)
        # Its creator may have created it this moment.
        known_by_ms = min(found.token.issue_timestamp_ms, self._now_ms()) + KNOWN_WITHIN_MS
        return UpstreamLogin(credentials, known_by_ms)
