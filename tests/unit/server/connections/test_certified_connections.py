"""A connection whose client need not log in acts as the principal that its certificate names."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.config import SecurityProtocol
from kafka_dt.identity.certificates import CertificateUnusable
from kafka_dt.server.handlers import RequestContext
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import NO_TIMESTAMP, ApiKey, build, response_type
from kafka_dt_protocol.wire.times import to_duration
from tests.support.server.fake_transport import Shell, listener, turns

ALICE = Principal.user("alice")
SSL = listener(SecurityProtocol.SSL)


class Seen:
    """A handler that notes who asks."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    async def __call__(self, context: RequestContext, _body: Any) -> Any:
        self.contexts.append(context)
        return build(response_type(context.header), error_code=ErrorCode.none, expiry_timestamp=NO_TIMESTAMP)


def refused(_certificate: bytes | None) -> Principal:
    raise CertificateUnusable("no rule matches")


@pytest.mark.parametrize("principal", [ALICE, ANONYMOUS])
async def test_requests_are_of_whom_the_certificate_names(principal: Principal) -> None:
    seen = Seen()
    shell = Shell(seen, SSL, certified=lambda _: principal)
    shell.ask(ApiKey.RENEW_DELEGATION_TOKEN, 1, hmac=b"", renew_period=to_duration(-1))
    await turns()
    (context,) = seen.contexts
    assert context.principal == principal
    assert context.security_protocol is SecurityProtocol.SSL
    assert not context.token_login


async def test_a_certificate_that_makes_nobody_a_principal_closes_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    seen = Seen()
    shell = Shell(seen, SSL, certified=refused)
    assert shell.transport.closed
    shell.ask(ApiKey.RENEW_DELEGATION_TOKEN, 1, hmac=b"", renew_period=to_duration(-1))
    await turns()
    assert seen.contexts == []
    assert shell.opened == []
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "Closing the connection of 192.0.2.1:50000 on listener SSL: no rule matches"
