"""An API that is declared once is announced, judged, served, audited, refused, forwarded and documented.

The API is one of Kafka's that kafka-dt does not speak, and the table with it is a value: nothing is patched.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from docs.generators import wire_protocol
from kafka_dt.audit import EventType
from kafka_dt.audit.recorder import Facts
from kafka_dt.config import SecurityProtocol
from kafka_dt.server.audited.requests import AnsweredRequest, AuditedRequests, AuditedTokens, RequestAudit, Told
from kafka_dt.server.handlers import RequestContext, ServedApi, dispatcher
from kafka_dt_protocol import APIS, ApiKey, AtGateway, build, declare, element_type, refusing_with
from kafka_dt_protocol.api.offered_versions import OfferedByUpstream
from tests.support.nodes.audit import RecordedEvents
from tests.support.server.fake_gateway import GatewayShell
from tests.support.server.fake_transport import Shell, listener, turns


class More(IntEnum):
    """The key and the name of the API."""

    LIST_GROUPS = 16


LIST = declare(More.LIST_GROUPS, 0, 4, refuse=refusing_with(groups=()), note="The groups that there are: none.")
HERE = APIS.having(LIST)
SASL = listener(SecurityProtocol.SASL_PLAINTEXT)


class GroupHandlers:
    """Answers the API."""

    fails = False

    def served(self) -> tuple[ServedApi, ...]:
        """Give what serves it."""
        return (ServedApi(More.LIST_GROUPS, self.list_groups, RequestAudit(EventType.TOKENS_DESCRIBED, _told)),)

    async def list_groups(self, context: RequestContext, _body: Any) -> Any:
        """Tell of one group."""
        if self.fails:
            raise RuntimeError("no groups today")
        kind = context.response_type
        group = build(element_type(kind, "groups"), group_id="g", protocol_type="", group_state="", group_type="")
        return build(kind, error_code=ErrorCode.none, groups=(group,))


def _told(_: AuditedTokens, request: AnsweredRequest) -> Told:
    yield request.answer.error_code, Facts(count=len(request.answer.groups))


def asked(shell: Shell, version: int) -> None:
    shell.ask(More.LIST_GROUPS, version, states_filter=(), types_filter=())


async def served(version: int, log: RecordedEvents | None = None, *, fails: bool = False) -> Any:
    handlers = GroupHandlers()
    handlers.fails = fails
    audit = AuditedRequests(log.recorder, AuditedTokens(lambda _: None, lambda _: None)) if log else None
    shell = Shell(dispatcher(handlers.served(), audit=audit), apis=HERE)
    asked(shell, version)
    await turns()
    (answer,) = shell.answers()
    return answer


@pytest.mark.parametrize("version", range(5))
async def test_it_is_served_in_every_version_in_that_versions_layout(version: int) -> None:
    answer = await served(version)
    assert type(answer) is LIST.response[version]
    assert [group.group_id for group in answer.groups] == ["g"]


async def test_what_becomes_of_its_requests_is_written_down() -> None:
    log = RecordedEvents()
    await served(4, log)
    (event,) = log.events
    assert (event.type, event.count) == (EventType.TOKENS_DESCRIBED, 1)


async def test_an_error_that_nobody_foresaw_is_answered_in_its_layout(caplog: pytest.LogCaptureFixture) -> None:
    answer = await served(4, fails=True)
    assert (answer.error_code, answer.groups) == (ErrorCode.unknown_server_error, ())
    assert "no groups today" in caplog.text


@pytest.mark.parametrize("version", range(5))
def test_it_is_announced(version: int) -> None:
    told = {each.api_key: (each.min_version, each.max_version) for each in HERE.api_versions(version).api_keys}
    assert told[16] == (0, 4)
    assert len(told) == len(HERE)


async def test_before_a_login_it_closes_the_connection() -> None:
    shell = Shell(listener=SASL, apis=HERE)
    asked(shell, 4)
    await turns()
    assert shell.answers() == []
    assert shell.connection.closing


async def test_during_a_login_it_is_refused_in_its_layout() -> None:
    shell = Shell(listener=SASL, apis=HERE)
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    asked(shell, 4)
    await turns()
    shell.connection.close()  # the answer waits with the closing
    _, refused = shell.answers()
    assert refused.error_code is ErrorCode.illegal_sasl_state


async def test_a_version_that_was_not_declared_closes_the_connection() -> None:
    shell = Shell(apis=APIS.having(declare(More.LIST_GROUPS, 0, 5, refuse=LIST.refuse, note="")))
    newer = shell.request(More.LIST_GROUPS, 5, states_filter=(), types_filter=())
    older = Shell(apis=HERE)
    older.send(newer)
    assert older.transport.closed


async def test_a_gateway_forwards_it_unless_it_is_to_serve_it() -> None:
    shell = GatewayShell(apis=HERE)
    asked(shell, 4)
    assert (await shell.upstream()).written
    ours = declare(More.LIST_GROUPS, 0, 4, refuse=LIST.refuse, note="", at_gateway=AtGateway.SERVED)
    serving = GatewayShell(dispatcher(GroupHandlers().served()), apis=APIS.having(ours))
    asked(serving, 4)
    await turns()
    assert len(serving.answers()) == 1
    assert serving.connector.made == []


def test_a_gateway_that_serves_it_offers_its_versions() -> None:
    ours = APIS.having(declare(More.LIST_GROUPS, 0, 4, refuse=LIST.refuse, note="", at_gateway=AtGateway.SERVED))
    nothing = build(APIS[ApiKey.API_VERSIONS].response[4], error_code=ErrorCode.none, api_keys=())
    body = OfferedByUpstream(ours.served_by_gateway).of(nothing).body(4)
    without = OfferedByUpstream(APIS.served_by_gateway).of(nothing).body(4)
    assert len(body) > len(without)


def test_the_manual_lists_it() -> None:
    assert "| 16 | ListGroups | 0-4 | 32 | forwards | The groups that there are: none. |" in wire_protocol.page(
        apis=HERE
    )
