"""Changes of ACLs and SCRAM users that the cluster decides, and a gateway writes down: CreateAcls, DeleteAcls, Alter...

    dispatcher(decided_by_cluster(AclHandlers(...).served()), ..., audit=AuditedRequests(recorder, tokens))

At a gateway that writes audit events, the client's request goes to the cluster byte for byte, on the connection that is
the client's there. The answer is read, its events are written, and then the client gets it byte for byte
(`AuditedRequests`). So an event tells what the cluster has answered, entry by entry.

If no answer comes, or none that can be read, the change may have been made. The events then have REQUEST_TIMED_OUT or
UNKNOWN_SERVER_ERROR, and the client's connection is closed, so that it asks again.

Source: KIP-140, KIP-554; docs/audit.md; docs/decisions/0035-audited-forwarding.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.server.handlers import ClusterAnswer
from kafka_dt_protocol import APIS, RemoteProtocolError, decode_response

if TYPE_CHECKING:
    from kafka_dt.server.handlers import Handler, RequestContext, ServedApi

READ_AT_ONCE: Final = 65_536
"""How many bytes of an answer are read in one go, which takes 15 ms; what a DeleteAcls has deleted can take seconds."""


def decided_by_cluster(served: Iterable[ServedApi]) -> Iterator[ServedApi]:
    """Give what serves some APIs, so that the cluster behind a gateway decides those that are audited there.

    A node decides what no cluster is asked (`RequestContext.ask_cluster`): all of it where it is no gateway, and at a
    gateway the SCRAM users that a client with a token wants to change.
    """
    for api in served:
        audited = APIS[api.key].audited_at_gateway
        yield replace(api, handler=partial(_decide, api.handler)) if audited else api


async def _decide(own: Handler, context: RequestContext, body: Any) -> Any:
    if context.ask_cluster is None:
        return await own(context, body)
    header = context.header
    try:
        content = await context.ask_cluster()
        read = partial(decode_response, header.api_key, header.api_version, content, context.apis)
        _, answer = read() if len(content) <= READ_AT_ONCE else await asyncio.to_thread(read)
    except EOFError:
        return ClusterAnswer(context.refusal(body, ErrorCode.request_timed_out))
    except RemoteProtocolError:
        return ClusterAnswer(context.refusal(body, ErrorCode.unknown_server_error))
    return ClusterAnswer(answer, content)
