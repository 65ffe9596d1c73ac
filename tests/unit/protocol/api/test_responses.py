"""Answers that say nothing but an error, for every API."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import APIS, ApiKey, RequestHeader, refusal
from kafka_dt_protocol.api.responses import build, element_type
from kafka_dt_protocol.wire.encoding import encode

VERSIONS = [(key, version) for key, api in APIS.items() for version in api.request]
ILLEGAL_STATE = "Request is not valid given the current SASL state."


class Body:
    """What refusals look at in a request, of whichever API."""

    topics = ()
    coordinator_keys = ("group",)
    key = "group"
    creations = filters = ("one", "another")
    deletions = ()
    upsertions = ()
    entries = ()
    resources = ()


def refused(key: ApiKey, version: int, error: ErrorCode, body: object = Body) -> Any:
    return refusal(RequestHeader(key, version, 1, None), body, error)


@pytest.mark.parametrize("error", [ErrorCode.illegal_sasl_state, ErrorCode.unknown_server_error])
@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_every_api_and_version_can_refuse(key: ApiKey, version: int, error: ErrorCode) -> None:
    entity = refused(key, version, error)
    assert encode(entity)
    assert getattr(entity, "error_code", error) in {error, ErrorCode.none}


def test_a_refused_metadata_says_the_error_of_each_topic_that_was_asked_for() -> None:
    topic = element_type(APIS[ApiKey.METADATA].request[12], "topics")
    body = Body()
    body.topics = (build(topic, name="t", topic_id=None), build(topic, name=None, topic_id=None))  # type: ignore[assignment]
    topics = refused(ApiKey.METADATA, 12, ErrorCode.illegal_sasl_state, body).topics
    assert [(each.name, each.error_code) for each in topics] == [
        ("t", ErrorCode.illegal_sasl_state),
        ("", ErrorCode.illegal_sasl_state),
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_coordinator_asked_for_during_a_login_is_refused_in_a_brokers_words(version: int) -> None:
    assert refused(ApiKey.FIND_COORDINATOR, version, ErrorCode.illegal_sasl_state).error_message == ILLEGAL_STATE


@pytest.mark.parametrize("version", [4, 5, 6])
def test_each_coordinator_asked_for_during_a_login_is_refused(version: int) -> None:
    (answer,) = refused(ApiKey.FIND_COORDINATOR, version, ErrorCode.illegal_sasl_state).coordinators
    assert (answer.key, answer.error_code, answer.error_message) == (
        "group",
        ErrorCode.illegal_sasl_state,
        ILLEGAL_STATE,
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_cluster_asked_for_during_a_login_is_refused_in_a_brokers_words(version: int) -> None:
    answer = refused(ApiKey.DESCRIBE_CLUSTER, version, ErrorCode.illegal_sasl_state)
    assert answer.error_message == "Unexpected Kafka request of type DESCRIBE_CLUSTER during SASL authentication."


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize(("key", "field"), [(ApiKey.CREATE_ACLS, "results"), (ApiKey.DELETE_ACLS, "filter_results")])
def test_a_change_of_acls_is_refused_part_by_part(key: ApiKey, field: str, version: int) -> None:
    results = getattr(refused(key, version, ErrorCode.cluster_authorization_failed), field)
    assert [(each.error_code.value, each.error_message) for each in results] == [(31, None)] * 2
    during_login = getattr(refused(key, version, ErrorCode.illegal_sasl_state), field)[0]
    assert during_login.error_message == f"Unexpected Kafka request of type {key.name} during SASL authentication."


def test_an_error_that_nobody_foresaw_has_no_words() -> None:
    assert refused(ApiKey.DESCRIBE_CLUSTER, 1, ErrorCode.unknown_server_error).error_message is None


def test_an_alteration_of_credentials_is_refused_for_each_user_once_in_their_order() -> None:
    request = APIS[ApiKey.ALTER_USER_SCRAM_CREDENTIALS].request[0]
    deletion, upsertion = element_type(request, "deletions"), element_type(request, "upsertions")
    added = {"iterations": 4096, "salt": b"s", "salted_password": b"p"}
    body = build(
        request,
        deletions=(deletion(name="zoe", mechanism=1), deletion(name="alice", mechanism=1)),
        upsertions=(upsertion(name="alice", mechanism=2, **added), upsertion(name="bob", mechanism=2, **added)),
    )
    refusal_of_each = refused(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, ErrorCode.illegal_sasl_state, body).results
    assert [each.user for each in refusal_of_each] == ["alice", "bob", "zoe"]
    assert {each.error_code for each in refusal_of_each} == {ErrorCode.illegal_sasl_state}
    words = "Unexpected Kafka request of type ALTER_USER_SCRAM_CREDENTIALS during SASL authentication."
    assert {each.error_message for each in refusal_of_each} == {words}
