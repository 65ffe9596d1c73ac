"""Long answers and long work, as handlers that a test gives to a connection.

shell = Shell(at_length)
shell.ask(DESCRIBE, 3, owners=None)        # answered in PARTS parts
"""

from __future__ import annotations

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from kafka_dt.server.handlers import RequestContext
from kafka_dt_protocol import ApiKey, build, element_type, response_type
from kafka_dt_protocol.wire.encoding import EncodedArray, encode
from kafka_dt_protocol.wire.frames import LONG_WRITE_BYTES

DESCRIBE = ApiKey.DESCRIBE_DELEGATION_TOKEN
TOKENS = 40
TOKEN_BYTES = 32_000
PARTS = -(-TOKENS * TOKEN_BYTES // LONG_WRITE_BYTES)


async def at_length(context: RequestContext, _: Any) -> Any:
    """Answer with more than a megabyte."""
    kind = response_type(context.header)
    principal = {"principal_type": "User", "principal_name": "a" * TOKEN_BYTES}
    requester = {"token_requester_principal_type": "User", "token_requester_principal_name": "b"}
    times = {"issue_timestamp": 1, "expiry_timestamp": 2, "max_timestamp": 3}
    token = build(element_type(kind, "tokens"), **principal, **requester, **times, token_id="", hmac=b"", renewers=())
    return build(kind, error_code=ErrorCode.none, tokens=EncodedArray([encode(token)] * TOKENS))


class Work:
    """A handler whose work never ends by itself."""

    def __init__(self, *, long: bool) -> None:
        self.long = long
        self.begun = self.called_off = False

    async def __call__(self, context: RequestContext, _: Any) -> Any:
        self.begun = True
        if self.long:
            context.end_with_client()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.called_off = True
            raise
