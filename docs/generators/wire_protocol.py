"""The APIs and SASL mechanisms that are spoken, as a page: made of the tables by which requests and logins are judged.

Source: protocol/kafka_dt_protocol/api/registry.py, kafka_dt/identity/mechanisms/__init__.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka_dt.config.settings import options
from kafka_dt.identity.mechanisms import MECHANISMS, Mechanism
from kafka_dt_protocol import APIS, Api, ApiTable, AtGateway
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS

_HEAD: Final = """\
# Wire protocol

kafka-dt speaks Kafka's own protocol, so existing clients work with it. The answer to ApiVersions tells a client which
APIs and versions it can use. That answer and this page come from the same table,
`protocol/kafka_dt_protocol/api/registry.py`. A request for another API, or in another version, closes its connection,
as at a broker. ApiVersions is an exception: kafka-dt answers a version that is too new in version 0 with error 35, so
that the client can ask again.

The table lists the APIs that a node serves by itself, and what a [gateway](how-to/gateway.md) does with each of them. A
gateway forwards every other API that the cluster behind it offers. "And audits" means that a gateway with audit events
[reads these requests](audit.md#at-a-gateway), so that their limits hold there, too.

"""

_AT_GATEWAY: Final = {
    AtGateway.FORWARDED: "forwards",
    AtGateway.SERVED: "serves",
    AtGateway.SERVED_BY_TOKEN: "serves after a login by token, else forwards",
}
"""What a gateway does with an API, in a word."""

_TAIL: Final = """\

Version 0 of the four token APIs, which Kafka 4.0 removed for its age, has the layout of version 1. Version 0 of the
three ACL APIs has a layout of its own.

## SASL mechanisms

`sasl.enabled.mechanisms` lists the mechanisms that a listener offers. This table comes from
`kafka_dt/identity/mechanisms/__init__.py`, which settings and logins use as well.

{mechanisms}
## Limits

The node checks these limits before it allocates memory for a client.

| what | limit |
|---|---|
| a frame before login | `sasl.server.max.receive.size`, {before_login} bytes by default |
| a frame after login | `socket.request.max.bytes`, {after_login} bytes by default |
| an array or a string | no longer than the bytes that have arrived |
| arrays and tagged fields of a request, together | as many elements as the table above has |
| tagged fields of a header | {header_tags} |
| requests under way | one for each connection, answered in the order of their arrival |

A frame that is too long, is cut short or does not decode closes its connection. The node logs one line; other
connections are not affected.

## Errors of the token APIs

| code | Kafka's name | when |
|---|---|---|
| 42 | INVALID_REQUEST | the token would be larger than ZooKeeper takes (1 MB): too many renewers |
| 61 | DELEGATION_TOKEN_AUTH_DISABLED | no `delegation.token.secret.key` is set |
| 62 | DELEGATION_TOKEN_NOT_FOUND | no token has this HMAC |
| 63 | DELEGATION_TOKEN_OWNER_MISMATCH | the caller is neither the owner nor a renewer |
| 64 | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED | the caller is anonymous, or logged in with a token |
| 65 | DELEGATION_TOKEN_AUTHORIZATION_FAILED | the caller may not make tokens for this owner |
| 66 | DELEGATION_TOKEN_EXPIRED | the expiry or the maximum lifetime has passed |
| 67 | INVALID_PRINCIPAL_TYPE | a renewer is not a `User` |

The node checks for them in this order: 64; for create 65, then 67; 61; for create 42; 62; 63; 66.

## Errors of authorization

| code | Kafka's name | when |
|---|---|---|
| 29 | TOPIC_AUTHORIZATION_FAILED | the caller may not describe the topic; other callers learn that it does not exist |
| 30 | GROUP_AUTHORIZATION_FAILED | the caller may not describe the group whose coordinator it asks for |
| 31 | CLUSTER_AUTHORIZATION_FAILED | the caller may not list or change ACLs |
| 42 | INVALID_REQUEST | the ACL cannot exist; the message says why |
| 53 | TRANSACTIONAL_ID_AUTHORIZATION_FAILED | the caller may not describe the transactional id |
| 54 | SECURITY_DISABLED | there are no ACLs, because `authorizer.class.name` is not set |

An ACL or filter with a code of 0 closes the connection, as at a broker. [Who may do what](security.md) has the rules.
"""


def page(mechanisms: Mapping[str, Mechanism[Any]] = MECHANISMS, apis: ApiTable = APIS) -> str:
    """Return the page as Markdown.

    Args:
        mechanisms: the SASL mechanisms that a listener can offer.
        apis: the APIs that are spoken.
    """
    table = "| key | API | versions | elements | a gateway | |\n|---|---|---|---|---|---|\n" + "".join(
        _row(api) for api in apis.values()
    )
    defaults = {declared.key: declared.default for _, declared in options()}
    return (
        _HEAD
        + table
        + _TAIL.format(
            mechanisms=_mechanisms(mechanisms.values()),
            before_login=defaults["sasl.server.max.receive.size"],
            after_login=defaults["socket.request.max.bytes"],
            header_tags=MAX_TAGGED_FIELDS,
        )
    )


def _row(api: Api) -> str:
    name = api.key.name.title().replace("_", "")
    versions = f"{api.min_version}-{api.max_version}"
    at_gateway = _AT_GATEWAY[api.at_gateway] + (" and audits" if api.audited_at_gateway else "")
    cells = (api.key.value, name, versions, f"{api.max_elements:,}", at_gateway, api.note)
    return f"| {' | '.join(map(str, cells))} |\n"


def _mechanisms(mechanisms: Iterable[Mechanism[Any]]) -> str:
    header = "| mechanism | users | delegation tokens | login module of its JAAS line |\n|---|---|---|---|\n"
    return header + "".join(
        f"| {each.name} | {each.users} | {'yes' if each.takes_tokens else 'no'} | `{each.login_module}` |\n"
        for each in mechanisms
    )
