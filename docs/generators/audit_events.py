"""The page about audit events: its tables are made of the schema that the events are made of.

Source: kafka_dt/audit/event.py, kafka_dt/audit/delivery.py, kafka_dt/audit/encoding.py, kafka_dt/tokens/sharing.py.
"""

from __future__ import annotations

from typing import Final, get_type_hints

from kafka_dt.audit import VERSION, AuditEvent, EventType, RefusalReason
from kafka_dt.audit.delivery import Budget
from kafka_dt.audit.encoding import LIST_BYTES, LONGEST_CLAIM, LONGEST_LINE, LONGEST_LIST, LONGEST_TEXT
from kafka_dt.audit.event import notes
from kafka_dt.audit.files import SYNC_SECONDS
from kafka_dt.audit.recorder import CLOSE_SECONDS
from kafka_dt.audit.synced import PATIENCE_SECONDS
from kafka_dt.audit.threaded import LINGER_SECONDS
from kafka_dt.config.options.audit import DEFAULT_TOPIC
from kafka_dt.gateway.upstream_side import ANSWER_S
from kafka_dt.server.audited.requests import SHOWN
from kafka_dt.tokens.sharing import LONG_ITEMS
from kafka_dt_protocol import APIS, ApiKey

_HEAD: Final = """\
# Audit events

A node can record each login, each refused login, and each change of a token, an ACL, a SCRAM user or the secret keys
as an event. It writes each event as one line of JSON to files, to a Kafka topic, or to both. Audit events are off until
you set one of these:

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
        "A client has logged in, or the node has refused it: by SASL (a re-authentication on the same connection too, "
        "KIP-368), or by a certificate on an SSL listener.",
        "For a login with a token: `token_id`, `owner`, `requester`.",
    ),
    EventType.TOKEN_CREATED: (
        "A client has asked to create a token.",
        "The token; if it was refused, the values of the request.",
    ),
    EventType.TOKEN_RENEWED: ("A client has asked to renew a token.", "The token, if one has the HMAC."),
    EventType.TOKEN_EXPIRED: (
        "A client has asked to expire a token, at once or at a time that it gives.",
        "The token, if one has the HMAC. `expiry_time` is its new expiry.",
    ),
    EventType.TOKEN_REMOVED: (
        "A node has removed an expired token. Only the worker that removed it writes the event, which has no client.",
        "The token.",
    ),
    EventType.TOKENS_DESCRIBED: ("A client has asked to describe tokens.", "`count`."),
    EventType.ACL_CREATED: (
        "A node, or the cluster behind a gateway, has created an ACL; or it has refused ACLs of one request for one "
        "reason.",
        "`acl`; for several refused ones, also `count` and `entries`.",
    ),
    EventType.ACL_DELETED: (
        "A node, or the cluster behind a gateway, has deleted an ACL; or it has refused filters of one request for one "
        "reason.",
        "`acl`; for several refused ones, also `count` and `entries`.",
    ),
    EventType.SCRAM_USER_CHANGED: (
        "A node, or the cluster behind a gateway, has changed a user's SCRAM credentials; or it has refused users of "
        "one request for one reason.",
        "`user`; for several refused ones, also `count` and `entries`.",
    ),
    EventType.KEYS_CHANGED: ("A worker has read new secret keys.", "`keys`; each worker writes an event of its own."),
}

_REASONS: Final = {
    RefusalReason.UNKNOWN_USER: "No user has that name.",
    RefusalReason.UNKNOWN_TOKEN: "No token has that id: the token never existed, was revoked, or was removed "
    "after its expiry.",
    RefusalReason.EXPIRED_TOKEN: "The token has expired and is not removed yet, or it expired during the login.",
    RefusalReason.WRONG_CREDENTIALS: "The password or HMAC is wrong, or the node does not accept the bearer "
    "token, ticket or certificate.",
    RefusalReason.UNSUPPORTED_MECHANISM: "The listener does not offer the mechanism that the client asked for "
    "(`mechanism`).",
    RefusalReason.NOT_ALLOWED: "The credentials are good, but not for this login: a re-authentication named another "
    "principal or mechanism, the client asked for another authorization id, or no mapping rule fits the name.",
    RefusalReason.BROKEN_EXCHANGE: "The client sent no login: it spoke another protocol, sent a request before the "
    "login, or sent a message that its mechanism does not have.",
    RefusalReason.UNAVAILABLE: "The node could not check the login, for example because ZooKeeper has been away for "
    "too long.",
}

_MIDDLE: Final = """

Only the event has the reason of a refused login; the client does not learn it. Java's clients and clients with a
certificate name their library just after the login. The event waits for that name for up to a second, and has the time
of the login.

These are no events:

- A login that stops because the client goes away, unless the node had already refused its bearer token.
- A connection to a PLAINTEXT listener, or to an SSL listener without a certificate: it has no login.
- A request that the table above does not name.
- A describe of more than {long_items:,} tokens whose client goes away before the answer: it ends without an answer.
  Every other request of the table is an event even if its client has gone.
- The commands `keys ...` and `pipeline tokens ...`: they work on ZooKeeper without a node, as brokers do, and write a
  report of their own. `token revoke`, `user` and `acl` with `--config` do record each change that they make: the `node`
  of these events is the node's name with `-revoke`, `-user` or `-acl` and the command's process id.
- A start with another secret key than the last time. The `key_id` of the tokens that the node then makes shows the key.

### At a gateway

A [gateway](how-to/gateway.md) records its logins, the requests about tokens, and the changes of ACLs and SCRAM users
that it forwards. All other forwarded requests are in the cluster's own audit log only.

The events of a forwarded change tell what the cluster answered, entry by entry; the client gets the cluster's answer
unchanged. The gateway waits for the answer, up to {answer_seconds:g} seconds, also if the client goes away. If no
answer comes in this time, or the connection to the broker breaks, the event has the reason `REQUEST_TIMED_OUT`: the
change may have been made. The gateway then closes the connection of the client, and the client tries again.

A gateway that writes audit events reads these requests, so it has limits for them that it does not have without audit
events. It offers only the versions that it can read, and closes the connection of a client that sends another version,
or a request of more than {entries:,} entries. The next request of a connection waits until the change has been answered
([decision 0035](decisions/0035-audited-forwarding.md)).

### Why a login was refused

| reason | |
|---|---|
"""

_FIELDS: Final = """

The reason of a refused request is the name of Kafka's error, such as `DELEGATION_TOKEN_OWNER_MISMATCH`.

## The fields

This is version {version} of the schema. An event leaves out a key that does not apply. The version grows when a key
changes its meaning or goes away. It does not grow for a new key, type or reason, so ignore those that you do not know.

| key | type | |
|---|---|---|
"""

_TAIL: Final = """

Times are milliseconds since 1970 in UTC. Lines are ASCII; JSON's escapes stand for other characters. Names come from
clients and may be long. The event of a successful change has the ACL, the user, the keys or the new token whole, up to
{longest_line} KiB a line. In all other events the node cuts texts to {longest_text} characters, with `…` as the last
one, and lists to {longest_list} entries of {longest_claim} characters and to {list_bytes} bytes. It always cuts the
names that a client gives itself (`client_id`, `client_software`, `client_software_version`, `mechanism`) to
{longest_claim} characters.

A request can name thousands of ACLs or users. Each one that was changed is an event. Those that were refused for the
same reason are one event together: `count` is their number, `entries` shows the first {shown} of them, and `acl` or
`user` has the first one. So a refused request never makes more events than there are reasons.

In the event of a refused login, `token_id` is the user name that the client gave: with `tokenauth=true` or DIGEST-MD5
any name, with plain SCRAM a name that looks like a token id and is no user's. `principal` is the name that the client
claimed. If a user types a password in the place of the user name, the event and the log contain it.

## The files

Each worker writes a file of its own, `audit-<node>-<worker>-<start in UTC>-<n>.jsonl.open`, and renames it to `.jsonl`
when it is complete: when it would grow beyond `kafka.dt.audit.log.file.bytes`, is older than
`kafka.dt.audit.log.roll.ms`, or the node ends. So a program that reads only `*.jsonl` never sees half a file or half a
line. It sees an event at most `kafka.dt.audit.log.roll.ms` later.

A node never writes to a complete file again. It deletes complete files at the age of
`kafka.dt.audit.log.retention.ms`, those of each worker in the order in which they were written. The setting is off by
default: set it, or remove the files yourself. A node also deletes old files when the disk is full.

After a crash, the next start of a node of the same name in the same folder finishes the files that end in `.open`: it
cuts them after their last whole line and renames them. In containers, where the name of the host changes, set
`kafka.dt.audit.node.name`. Several nodes may share a folder, because each locks the file that it writes.

Files have mode 640, the folder has 750. They hold who uses what from where: protect them as you protect logs.

## The topic

The same lines, without the line feed, are the values of records without keys in `{topic}`
(`kafka.dt.audit.kafka.topic`). The topic needs `pip install ./protocol '.[audit-kafka]'` (in a checkout; `make setup`
installs it), and a user that may WRITE to the topic.

Create the topic yourself, with the partitions, replicas and retention that you want. The order of events is that of
`time`, not of offsets. A node sends a batch again that brokers did not acknowledge, so **the topic can hold an event
twice: compare `id`**.

Do not write to a cluster behind the same gateway: each event would then cause another event.

## What can be lost

In [strict mode](#evidence) the node loses no event of a success that it has told a client. Otherwise no request waits
for its event. The folder and the topic have a queue and a thread each; a thread writes the events of {linger} ms at
once. While a thread cannot write, its worker keeps events up to `kafka.dt.audit.buffer.bytes` (some
40,000 logins by default) and tries again; it loses further events. The log says when the failure begins, how many
events of each kind were lost so far, and when the failure ends.

Refused requests and failed logins fill at most {refused:.0%} of the buffer, successful logins and descriptions of
tokens at most {access:.0%}. The rest is free for successful changes, so a flood of other events cannot displace a
change.

| what happens | what is lost |
|---|---|
| the node is told to end | events that it cannot write within {close} s |
| a worker is killed | the events of the last {linger} ms, or the whole buffer if writing had failed |
| the machine stops | the last {sync} s of the files; in the topic, what its `acks` allow |
| the folder is full, or the brokers are away | nothing until the buffer is full |

A loss shows in the events as well: it leaves a gap in the numbers at the end of a worker's ids.

## Evidence

Use strict mode when an event must exist for everything that clients were told, and when a later change of the files
must show:

```properties
kafka.dt.audit.mode=strict
kafka.dt.audit.log.dir=/var/log/kafka-dt/audit
kafka.dt.audit.log.signing.key=file:/etc/kafka-dt/audit.key
```

Name a folder without other audit files: those that were not written in strict mode have no chain, and beside files
that have one, `kafka-dt audit verify` reports each of them (`no-chain`).

Make the key, which only the user of the node may read, and give the public one to those who verify:

<!-- not run: the node of the examples has its key already -->
```sh
openssl genpkey -algorithm ed25519 -out /etc/kafka-dt/audit.key
chown kafka-dt: /etc/kafka-dt/audit.key
```

<!-- needs: openssl -->
```sh
openssl pkey -in /etc/kafka-dt/audit.key -pubout -out audit.pub
```

**No success without its event.** The node tells a client of a login, a change or a description of tokens only when the
event is durable: synced to the folder, or acknowledged by the topic's brokers (`kafka.dt.audit.kafka.acks`). One of the
two is enough. Events that come while the node syncs share the next sync. While the node can write to neither, it
refuses: it closes connections that log in, and answers requests with `REQUEST_TIMED_OUT`, which clients try again. A
change whose event could not be written may have been made, and its client does not learn of it. A login that the node
refuses so may have two events: that it succeeded and, with the same `connection`, that it was refused (`unavailable`).
A folder that takes nothing for {patience:g} s, for example while its NFS server is away, counts as one that cannot be
written to, and a topic after `kafka.dt.audit.kafka.request.timeout.ms`. Refused logins and refused requests do not wait
for their events. The event of a login is written before Java's clients name their library, so it has no
`client_software`.

**A chain.** The lines that the node writes together are a batch. The first line of each batch has the key `chain`: the
SHA-256 of the batch before it, in hex digits. The first batch of a file has the hash of the last batch in the worker's
previous file, and the first batch of all has 64 zeros. Each complete file has a digest beside it,
`<file>.jsonl.digest`: a line of JSON with the file's name, the number of its lines and bytes and the hash of its last
batch, and a line with the signature of the first (Ed25519, base64).

```sh
kafka-dt audit verify /var/log/kafka-dt/audit --public-key audit.pub
```

```text
WORKER        FILES   LINES  FAULTS  OLDEST FILE
audit-kdt1-0     41  96,112       0  begins the chain
...
```

If a line was altered, the command names the file and the lines:

<!-- not printed: nothing was altered here; tests/integration/test_strict_audit.py alters lines -->
```text
WORKER        FILES   LINES  FAULTS  OLDEST FILE
audit-kdt1-0     41  96,112       1  begins the chain
audit-kdt1-1     40  95,870       0  begins the chain
KIND     FILE                                   LINES
altered  audit-kdt1-0-20261121T174416Z-0.jsonl  4-6    lines were altered, removed or reordered here
Error: 1 fault in /var/log/kafka-dt/audit
```

The exit status is 1 if there is a fault; `--output json` is for programs.

If no file has a hash and no digest is there, the command says in one line that there is nothing to verify, and the exit
status is 3: no node in strict mode wrote these files, or they were altered. If your nodes are strict, give the command
`--public-key`; then it reports every such file, and the exit status is 1.

| kind | what it means |
|---|---|
| `altered` | Lines of that batch were altered, removed, added or reordered after the node wrote them. |
| `missing-file` | A file between this one and the one before is not there. |
| `new-chain` | The node did not find the file before this one when it started: the files had been moved away. |
| `no-chain` | The file begins with lines that no node in strict mode wrote. |
| `no-digest` | A complete file has no digest, or one that cannot be read or is that of another file. |
| `not-signed` | The digest names no key that was given, or that key did not sign it. |
| `no-event` | A line is no event. |
| `lost` | The node could not write some events, for example to a full buffer. The text has their ids. |

**To change the signing key,** make a new one, name it in `kafka.dt.audit.log.signing.key` and restart the node. Keep
the old public key as long as files that it signed are there, and give both (`--public-key audit.pub --public-key
audit-before.pub`). Each digest names its key (`key`: the first 16 hex digits of the SHA-256 of the public key's 32
bytes), and no other key verifies it. The old private key can still sign: destroy it. If a stranger may have it, leave
its public key out, and compare the files that it signed with your copies of them.

What the chain cannot show: the removal of the newest files, the removal of the oldest ones (retention removes those
too), and a change of the file that the node still writes, if the chain is made anew as well. Keep
`kafka.dt.audit.log.roll.ms` short, copy complete files and digests to a place where the node's user cannot write, and
keep the key from those who may write to the folder.

## What is never in an event

An event has no field for an HMAC, a password, a bearer token, a secret key or the salted password of a SCRAM user.
The event of a request that names a token by its HMAC has the token's id instead; if no token has the HMAC, the event
names no token. Events name secret keys by their ids, which are one-way: they do not give away the keys.

## Look at them

Why logins were refused, and from where:

```sh
cat /var/log/kafka-dt/audit/*.jsonl |
  jq -r 'select(.type == "login" and .outcome == "refused") | [.reason, .client_address] | @tsv' |
  sort | uniq -c | sort -rn
```

What happened to a token, and who used it:

```sh
cat /var/log/kafka-dt/audit/*.jsonl |
  jq -c 'select(.token_id == "W23eVbJOQheJ-v0f6A8uRg") |
    [(.time / 1000 | floor | todate), .type, .outcome, .principal, .client_address]'
```

For more, use [`kafka-dt pipeline`](how-to/pipeline.md): it makes a table of the files or the topic, and reports events
that deserve a look, such as the use of a token after its revocation or from a new address.
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
            _MIDDLE.format(
                long_items=LONG_ITEMS, answer_seconds=ANSWER_S, entries=APIS[ApiKey.CREATE_ACLS].max_elements
            ),
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
                patience=PATIENCE_SECONDS,
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
