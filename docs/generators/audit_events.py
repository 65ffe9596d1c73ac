"""The page about audit events: its tables are made of the schema that the events are made of.

Source: kafka_dt/audit/event.py, kafka_dt/audit/delivery.py, kafka_dt/audit/encoding.py, kafka_dt/tokens/long_work.py.
"""

from __future__ import annotations

from typing import Final, get_type_hints

from kafka_dt.audit import VERSION, AuditEvent, EventType, RefusalReason
from kafka_dt.audit.delivery import LINGER_SECONDS, Budget
from kafka_dt.audit.encoding import LIST_BYTES, LONGEST_CLAIM, LONGEST_LINE, LONGEST_LIST, LONGEST_TEXT
from kafka_dt.audit.event import notes
from kafka_dt.audit.files import SYNC_SECONDS
from kafka_dt.audit.recorder import CLOSE_SECONDS
from kafka_dt.config.options.audit import DEFAULT_TOPIC
from kafka_dt.server.audited.requests import SHOWN
from kafka_dt.tokens.long_work import LONG_ITEMS

_HEAD: Final = """\
# Audit events

A node can write down who logged in and who was refused, and every token, ACL, SCRAM user and ring of keys that was
changed: one event each, one line of JSON each, to files, to a Kafka topic, or to both. It is off until one of them is
set:

```properties
kafka.dt.audit.log.dir=/var/log/kafka-dt/audit
kafka.dt.audit.kafka.bootstrap.servers=kafka1:9093,kafka2:9093
```

The other settings are in [Configuration](configuration.md#audit-events). A login by token:

```json
{{"version":{version},"id":"7f3c9a51e2d04b86-1042","time":1795283056123,"node":"kdt1-0","type":"login","outcome":"ok",
"listener":"SASL_SSL","mechanism":"SCRAM-SHA-256","principal":"User:alice","by_token":true,
"session_token_id":"W23eVbJOQheJ-v0f6A8uRg","client_id":"etl-7","client_software":"apache-kafka-java",
"client_software_version":"3.9.1","client_address":"10.0.0.7","client_port":50312,
"connection":"7f3c9a51e2d04b86-c871","token_id":"W23eVbJOQheJ-v0f6A8uRg","owner":"User:alice",
"requester":"User:alice"}}
```

(In a file it is a single line.)

## What is an event

| type | when | what it is about |
|---|---|---|
"""

_TYPES: Final = {
    EventType.LOGIN: (
        "A client has logged in or was refused: by SASL, again on the same connection too (KIP-368), or by a "
        "certificate on an SSL listener.",
        "With a token: `token_id`, `owner`, `requester`.",
    ),
    EventType.TOKEN_CREATED: ("A request to create a token.", "The token; when refused, what was asked for."),
    EventType.TOKEN_RENEWED: ("A request to renew one.", "The token, if the HMAC is one's."),
    EventType.TOKEN_EXPIRED: (
        "A request to let one end, now or at a time that it gives.",
        "The token, if the HMAC is one's. `expiry_time` is when it ends.",
    ),
    EventType.TOKEN_REMOVED: (
        "A node has removed a token that had ended. Only the worker that did it writes it; it has no client.",
        "The token.",
    ),
    EventType.TOKENS_DESCRIBED: ("A request to describe tokens.", "`count`."),
    EventType.ACL_CREATED: (
        "An ACL that was created; or the ACLs of a request that were refused for one reason.",
        "`acl`; of several refused ones `count` and `entries`.",
    ),
    EventType.ACL_DELETED: (
        "An ACL that was deleted; or the filters of a request that were refused for one reason.",
        "`acl`; of several refused ones `count` and `entries`.",
    ),
    EventType.SCRAM_USER_CHANGED: (
        "A user whose SCRAM credentials were changed; or the users of a request that were refused for one reason.",
        "`user`; of several refused ones `count` and `entries`.",
    ),
    EventType.KEYS_CHANGED: ("A worker has taken over other secret keys.", "`keys`; each worker writes its own."),
}

_REASONS: Final = {
    RefusalReason.UNKNOWN_USER: "No user has that name.",
    RefusalReason.UNKNOWN_TOKEN: "No token has that id: it never was, was revoked, or has ended and been removed.",
    RefusalReason.EXPIRED_TOKEN: "The token has ended and is not removed yet, or it ended during the login.",
    RefusalReason.WRONG_CREDENTIALS: "A wrong password or HMAC, or a bearer token, ticket or certificate that is not "
    "accepted.",
    RefusalReason.UNSUPPORTED_MECHANISM: "The listener does not offer it; `mechanism` is what was asked for.",
    RefusalReason.NOT_ALLOWED: "Good credentials for something else: another principal or mechanism at a "
    "re-authentication, another authorization id, a name that no mapping rule fits.",
    RefusalReason.BROKEN_EXCHANGE: "What was sent is no login: another protocol, a request before it, a message that "
    "its mechanism does not have.",
    RefusalReason.UNAVAILABLE: "It could not be checked, for example because ZooKeeper has been away for too long.",
}

_MIDDLE: Final = """

The client of a refused login learns as little as before; only the event has the reason. Java's clients and clients
with a certificate name their library just after the login; the event waits for that, up to a second, and has the time
of the login.

A login that stops because the client goes away is no event, unless the node had refused its bearer token by then.
There is no login, and so no event, on a PLAINTEXT listener or without a certificate on an SSL listener. Of requests
only those above are events. A describe of more than {long_items:,} tokens whose client has gone before the answer is
no event either: it ends without an answer. Every other request is an event even if its client has gone. The bulk
commands (`token expire-all`, `keys ...`) work on ZooKeeper past the nodes, as brokers do, and have a report of their
own. A node that is started with another secret key than the last time has not changed it: there is no event, but the
`key_id` of the tokens that it makes tells.

A [gateway](how-to/gateway.md) has the events of its logins and of the tokens that are made at it. ACLs, SCRAM users and
everything else that it passes on are the cluster's to write down.

### Why a login was refused

| reason | |
|---|---|
"""

_FIELDS: Final = """

The reason of a refused request is the name of Kafka's error, such as `DELEGATION_TOKEN_OWNER_MISMATCH`.

## The fields

This is version {version} of the schema. A key that does not apply is left out. A key that changes its meaning or goes
away makes the next version; a new key, type or reason does not, so leave alone what you do not know.

| key | type | |
|---|---|---|
"""

_TAIL: Final = """

Milliseconds are since 1970 in UTC. Lines are ASCII; other characters are escaped as JSON does it. Names come from
clients and may be long. A successful change writes the ACL, the user, the keys or the new token whole, up to
{longest_line} KiB a line. In all other events texts are cut to {longest_text} characters, with `…` as the last one,
and lists to {longest_list} entries of {longest_claim} characters and to {list_bytes} bytes. The names that a client
gives itself (`client_id`, `client_software`, `client_software_version`, `mechanism`) are always cut to {longest_claim}
characters.

A request can name thousands of ACLs or users. Each one that was changed is an event. Those that were refused for the
same reason are one event together: `count` is their number, `entries` shows the first {shown} of them, and `acl` or
`user` has the first one. So a refused request never makes more events than there are reasons.

`token_id` of a refused login is what the client gave for one: with `tokenauth=true` or DIGEST-MD5 the user name, and
with plain SCRAM a user name that looks like a token id and is no user's. `principal` of a refused login is the name
that the client claimed. If a user types a password in the place of the user name, the event and the log contain it.

## The files

Each worker writes a file of its own, `audit-<node>-<worker>-<start in UTC>-<n>.jsonl.open`, and renames it to `.jsonl`
when it is complete: when it would grow beyond `kafka.dt.audit.log.file.bytes`, is older than
`kafka.dt.audit.log.roll.ms`, or the node ends. So a program that reads only `*.jsonl` never sees half a file or half a
line, and sees events later by that time at most. Complete files are never touched again but by
`kafka.dt.audit.log.retention.ms`, which is off by default: take them away, or set it. Old files are still deleted when
the disk is full.

A file that a crash has left `.open` is finished by the next start of a node of the same name in the same folder: what
follows its last whole line is cut off, and it is renamed. In containers, where the name of the host changes, set
`kafka.dt.audit.node.name`. Several nodes may share a folder; they lock what they write.

Files are made with mode 640, the folder with 750. They hold who uses what from where: keep them as you keep logs.

## The topic

The same lines, without the line feed, are the values of records without keys in `{topic}`
(`kafka.dt.audit.kafka.topic`). It needs `pip install ./protocol '.[audit-kafka]'` (in a checkout; `make setup` has it),
and a user that may WRITE to the topic.
Make the topic yourself, with the partitions, replicas and retention that you want; the order of events is that of
`time`, not of offsets. A batch that was not acknowledged is sent again, so **an event can be there twice: `id` tells**.

Use another cluster than one behind the same gateway, or every event has an event.

## What can be lost

No request waits for its event. The event goes into a queue, and a thread each for the folder and the topic writes the
events of {linger} ms at once. While one of them cannot be written to, a worker keeps events up to
`kafka.dt.audit.buffer.bytes` (some 40,000 logins by default), tries again, and loses what comes after that. The log
says when it begins, how many of each kind were lost so far, and when it is over.

Refused requests and failed logins fill at most {refused:.0%} of the buffer, successful logins and descriptions of
tokens at most {access:.0%}. The rest is free for successful changes, so a flood of other events cannot displace a
change.

| what happens | what is lost |
|---|---|
| the node is told to end | nothing that can be written within {close} s |
| a worker is killed | what it had not written: the last {linger} ms, or the buffer where writing failed |
| the machine stops | the last {sync} s of the files; of the topic what its `acks` allow |
| the folder is full, the brokers are away | nothing, as long as the buffer lasts |

A loss shows in the events as well: it leaves a gap in the numbers at the end of a worker's ids.

## What is never in an event

No HMAC, no password, no bearer token, no secret key and no salted password of a SCRAM user: there is no field for one.
A request that names a token by its HMAC has the token's id in its event, and an HMAC of no token is not repeated.
Secret keys appear by their ids, which cannot be turned back into keys.

## Look at them

Why logins were refused, and from where:

```sh
cat /var/log/kafka-dt/audit/*.jsonl |
  jq -r 'select(.type == "login" and .outcome == "refused") | [.reason, .client_address] | @tsv' |
  sort | uniq -c | sort -rn
```

What has happened to a token, and who used it:

```sh
cat /var/log/kafka-dt/audit/*.jsonl |
  jq -c 'select(.token_id == "W23eVbJOQheJ-v0f6A8uRg") |
    [(.time / 1000 | floor | todate), .type, .outcome, .principal, .client_address]'
```

For more than that there is `kafka-dt pipeline`: it makes a table of the files or the topic, and finds what deserves a
look, such as a token that was used after its end or from somewhere new.
"""

_TYPE_WORDS: Final = {
    "str": "text",
    "int": "number",
    "bool": "true or false",
    "tuple[str, ...]": "list of texts",
}


def page() -> str:
    """Return the page as Markdown."""
    types = "\n".join(f"| `{kind}` | {_TYPES[kind][0]} | {_TYPES[kind][1]} |" for kind in EventType)
    reasons = "\n".join(f"| `{reason}` | {_REASONS[reason]} |" for reason in RefusalReason)
    return "".join(
        (
            _HEAD.format(version=VERSION),
            types,
            _MIDDLE.format(long_items=LONG_ITEMS),
            reasons,
            _FIELDS.format(version=VERSION),
            "\n".join(_field_rows()),
            _TAIL.format(
                longest_line=LONGEST_LINE // 1024,
                longest_text=LONGEST_TEXT,
                longest_claim=LONGEST_CLAIM,
                list_bytes=LIST_BYTES,
                longest_list=LONGEST_LIST,
                shown=SHOWN,
                refused=Budget.REFUSED.value,
                access=Budget.ACCESS.value,
                topic=DEFAULT_TOPIC,
                linger=round(LINGER_SECONDS * 1000),
                close=round(CLOSE_SECONDS),
                sync=round(SYNC_SECONDS + LINGER_SECONDS, 1),
            ),
        )
    )


def _field_rows() -> list[str]:
    hints = get_type_hints(AuditEvent)
    rows = []
    for name, note in notes().items():
        text = str(getattr(hints[name], "__name__", hints[name])).removesuffix(" | None")
        words = "number, ms" if note.timestamp else _TYPE_WORDS.get(text, "text")
        rows.append(f"| `{name}` | {words} | {note.doc} |")
    return rows
