"""Requests that are well formed and say strange things: each is answered, none is unforeseen."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from kafka_dt_protocol import APIS, ApiKey, decode_response
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import FieldLayout, entity_layout
from kafka_dt_protocol.wire.times import to_duration
from tests.support.nodes.node import Node
from tests.support.protocol.kio_entities import rich, sparse
from tests.support.protocol.raw import CREATE, DESCRIBE, EXPIRE, RawConnection, ms

ROUNDS = 12
UNKNOWN_SERVER_ERROR = -1
REQUEST_TIMED_OUT = 7
TEXTS = (
    "",
    " ",
    "User",
    "user",
    "Group",
    "alice",
    "bob",
    "User:alice",
    "a:b:c",
    ":",
    "%",
    "%zz",
    "../../x",
    "/",
    "\0",
    "\n",
    "\x7f",
    "\ufffd",
    "é",
    "🐘" * 50,
    "ANONYMOUS",
    "*",
    "x" * 15_000,
    "\u202ealice",
    '"}',
)
PERIODS = (-(2**63), -2, -1, 0, 1, 1_000, 604_800_000, 2**53, 2**63 - 1)
UUIDS = (UUID(int=0), UUID(int=1), UUID(int=2**128 - 1))

SERVED = (
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_CLUSTER,
)
REQUESTS = [(api, version) for api in SERVED for version in APIS[api].request]


class Odd:
    """Fills requests with strange values that the protocol allows."""

    def __init__(self, seed: str, hmacs: list[bytes]) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a test that can be repeated
        self._hmacs = hmacs

    def request(self, entity_type: Any) -> Any:
        layout = entity_layout(entity_type)
        return entity_type(**{field.name: self._value(field) for field in (*layout.plain, *layout.tagged)})

    def _value(self, field: FieldLayout) -> Any:
        if field.nullable and self._random.random() < 0.3:
            return None
        if not field.is_array:
            return self._single(field)
        return tuple(self._single(field) for _ in range(self._random.choice((0, 1, 2, 50))))

    def _single(self, field: FieldLayout) -> Any:
        if field.entity is not None:
            return self.request(field.entity)
        choices: dict[str | None, Callable[[], Any]] = {
            "string": lambda: self._random.choice(TEXTS),
            "bytes": lambda: self._random.choice((b"", b"x", bytes(64), self._random.randbytes(64), *self._hmacs)),
            "bool": lambda: self._random.random() < 0.5,
            "uuid": lambda: self._random.choice(UUIDS),
            "timedelta_i64": lambda: to_duration(self._random.choice(PERIODS)),
            "timedelta_i32": lambda: timedelta(milliseconds=self._random.choice((-(2**31), -1, 0, 2**31 - 1))),
            "int8": lambda: self._random.choice((-128, -1, 0, 1, 127)),
        }
        return choices[field.kafka_type]()


def codes(answer: Any) -> set[int]:
    """Every error code of an answer, at any depth."""
    found = set()
    for each in fields(answer):
        value = getattr(answer, each.name)
        if each.name == "error_code":
            found.add(value.value)
        for element in value if isinstance(value, tuple) else ():
            if is_dataclass(element):
                found |= codes(element)
    return found


def ask(connection: RawConnection, api: ApiKey, version: int, entity: Any) -> Any:
    connection.send_frame(connection.header(api, version, flexible=entity.__flexible__) + encode(entity))
    return decode_response(api, version, connection.receive_frame())[1]


@pytest.mark.parametrize(("api", "version"), REQUESTS, ids=lambda value: str(int(value)))
def test_strange_values_are_answered(node: Node, api: ApiKey, version: int) -> None:
    with node.connect(user="alice") as connection:
        hmac = connection.ask(CREATE, 1, renewers=(), max_lifetime=ms(60_000)).hmac
        entity_type = APIS[api].request[version]
        odd = Odd(f"{api} {version}", [hmac])
        entities = [sparse(entity_type), rich(entity_type), *(odd.request(entity_type) for _ in range(ROUNDS))]
        for entity in entities:
            assert not codes(ask(connection, api, version, entity)) & {UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT}, entity
        assert connection.ask(DESCRIBE, 3, owners=()).error_code.value == 0
    node.check_log()


def test_a_token_with_strange_names_lives_like_any_other(node: Node) -> None:
    for name in TEXTS[1:]:
        with node.connect(user="admin") as admin:
            made = admin.ask(
                CREATE, 3, owner_principal_type="User", owner_principal_name=name, renewers=(), max_lifetime=ms(-1)
            )
            assert (made.error_code.value, made.principal_name) == (0, name)
            described = [each for each in admin.ask(DESCRIBE, 3, owners=None).tokens if each.token_id == made.token_id]
            assert [each.principal_name for each in described] == [name]
            assert admin.ask(EXPIRE, 2, hmac=made.hmac, expiry_time_period=ms(-1)).error_code.value == 0
