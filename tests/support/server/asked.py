"""One request to handlers, without a connection.

answer = await asked(ToolHandlers(authorizer).served(), ApiKey.LIST_GROUPS, 4, states_filter=())
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.server.handlers import RequestContext, ServedApi, dispatcher
from kafka_dt.tokens import Principal
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, build, encode_response


async def asked(served: Iterable[ServedApi], api: ApiKey, version: int, **values: Any) -> Any:
    """Ask as User:alice, and see that the answer can be written."""
    context = RequestContext(
        header=RequestHeader(api, version, 1, None),
        principal=Principal.user("alice"),
        client_host="127.0.0.1",
        token_login=False,
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        endpoint=Endpoint("SASL_PLAINTEXT", "tokens.example", 9094),
    )
    answer = await dispatcher(served)(context, build(APIS[api].request[version], **values))
    assert encode_response(api, version, 1, answer)
    return answer
