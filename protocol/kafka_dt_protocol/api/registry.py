"""The APIs that are spoken here, each declared once: an API, or a new version of one, is added in this file.

The answer to ApiVersions is computed from this table, and a request is judged by it, so the two cannot disagree.

Version 0 of the token APIs, which kio no longer has, has the layout of version 1: Kafka 4.0 removed it for its
age, not for its form. That of the ACL APIs has a layout of its own (`entities.py`).

Source: org.apache.kafka.common.protocol.ApiKeys; Kafka 3.9's message schemas; KIP-35, KIP-511, KIP-896.
"""

from enum import IntEnum
from typing import Final

from kafka_dt_protocol.api.entities import load_acl_request, load_acl_response
from kafka_dt_protocol.api.responses import (
    refuse_acl_creations,
    refuse_acl_deletions,
    refuse_alterations,
    refuse_configs,
    refuse_coordinators,
    refuse_creation,
    refuse_metadata,
    refuse_quotas,
    refusing_with,
)
from kafka_dt_protocol.api.table import ApiTable, AtGateway, declare
from kafka_dt_protocol.login.authentication import Request
from kafka_dt_protocol.wire.times import to_timestamp


class ApiKey(IntEnum):
    """The APIs of Kafka that are spoken here."""

    METADATA = 3
    FIND_COORDINATOR = 10
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    SASL_AUTHENTICATE = 36
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_CLUSTER = 60


APIS: Final = ApiTable(
    (
        declare(
            ApiKey.METADATA,
            0,
            13,
            max_elements=2_000,
            refuse=refuse_metadata,
            note="One broker: the node itself, under the address of `advertised.listeners` for the listener by which "
            "the client came, else of `listeners`, and without a host there under that to which it connected. "
            "There are no topics.",
        ),
        declare(
            ApiKey.FIND_COORDINATOR,
            0,
            6,
            max_elements=2_000,
            refuse=refuse_coordinators,
            note="Refused with an error that clients do not retry: there are no groups or transactions.",
        ),
        declare(
            ApiKey.LIST_GROUPS,
            0,
            5,
            max_elements=1_000,
            refuse=refusing_with(groups=()),
            note="There are none.",
        ),
        declare(
            ApiKey.SASL_HANDSHAKE,
            0,
            1,
            steps=(Request.HANDSHAKE_V0, Request.HANDSHAKE_V1),
            at_gateway=AtGateway.SERVED,
            refuse=refusing_with(mechanisms=()),
            note="After version 0 the tokens of the mechanism travel as bare frames, after 1 as below.",
        ),
        declare(
            ApiKey.API_VERSIONS,
            0,
            4,
            steps=(Request.API_VERSIONS,),
            at_gateway=AtGateway.SERVED,
            refuse=refusing_with(api_keys=()),
            note="The same before and after login. Its response header never has tagged fields (KIP-511).",
        ),
        declare(
            ApiKey.DESCRIBE_ACLS,
            0,
            3,
            load_request=load_acl_request,
            load_response=load_acl_response,
            refuse=refusing_with(in_words=True, resources=()),
            note="Needs Describe on the cluster. Version 0 has no type of pattern: all are literal.",
        ),
        declare(
            ApiKey.CREATE_ACLS,
            0,
            3,
            max_elements=5_000,
            audited_at_gateway=True,
            load_request=load_acl_request,
            load_response=load_acl_response,
            refuse=refuse_acl_creations,
            note="Needs Alter on the cluster. Each ACL has its own error.",
        ),
        declare(
            ApiKey.DELETE_ACLS,
            0,
            3,
            max_elements=5_000,
            audited_at_gateway=True,
            load_request=load_acl_request,
            load_response=load_acl_response,
            refuse=refuse_acl_deletions,
            note="Needs Alter on the cluster. Each filter is told what it deleted.",
        ),
        declare(
            ApiKey.DESCRIBE_CONFIGS,
            1,
            4,
            max_elements=2_000,
            refuse=refuse_configs,
            note="Needs DescribeConfigs on the cluster. The node itself has an empty configuration; there are no "
            "topics, and nothing else has one.",
        ),
        declare(
            ApiKey.SASL_AUTHENTICATE,
            0,
            2,
            steps=(Request.TOKEN,),
            at_gateway=AtGateway.SERVED,
            refuse=refusing_with(
                error_message="SaslAuthenticate request received after successful authentication", auth_bytes=b""
            ),
            note="The session's lifetime is in the answer from version 1 on (KIP-368).",
        ),
        declare(
            ApiKey.CREATE_DELEGATION_TOKEN,
            0,
            3,
            first_entity=1,
            max_elements=5_000,
            at_gateway=AtGateway.SERVED,
            refuse=refuse_creation,
            note="An owner other than the caller can be named in version 3 (KIP-373).",
        ),
        declare(
            ApiKey.RENEW_DELEGATION_TOKEN,
            0,
            2,
            first_entity=1,
            at_gateway=AtGateway.SERVED,
            refuse=refusing_with(expiry_timestamp=to_timestamp(0)),
            note="By the owner and the renewers, never beyond the maximum lifetime.",
        ),
        declare(
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            0,
            2,
            first_entity=1,
            at_gateway=AtGateway.SERVED,
            refuse=refusing_with(expiry_timestamp=to_timestamp(0)),
            note="A negative period deletes the token at once.",
        ),
        declare(
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            0,
            3,
            first_entity=1,
            max_elements=5_000,
            at_gateway=AtGateway.SERVED,
            refuse=refusing_with(tokens=()),
            note="Owners null: all that the caller may see; empty: none. "
            "The requester is in the answer from version 3 on.",
        ),
        declare(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            0,
            1,
            max_elements=1_000,
            refuse=refusing_with(in_words=True, entries=None),
            note="There are none. Needs DescribeConfigs on the cluster (KIP-546).",
        ),
        declare(
            ApiKey.ALTER_CLIENT_QUOTAS,
            0,
            1,
            max_elements=5_000,
            refuse=refuse_quotas,
            note="Refused: a node has no quotas of clients. Needs AlterConfigs on the cluster (KIP-546).",
        ),
        declare(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            0,
            0,
            max_elements=5_000,
            refuse=refusing_with(in_words=True, results=()),
            note="Mechanisms and iterations of SCRAM users; needs DESCRIBE on the Cluster (KIP-554).",
        ),
        declare(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            0,
            max_elements=5_000,
            # Brokers do not check that a stolen token does not make itself a password (KIP-554).
            at_gateway=AtGateway.SERVED_BY_TOKEN,
            audited_at_gateway=True,
            refuse=refuse_alterations,
            note="Needs ALTER on the Cluster; refused for logins by token (KIP-554).",
        ),
        declare(
            ApiKey.DESCRIBE_CLUSTER,
            0,
            2,
            refuse=refusing_with(in_words=True, cluster_id="", brokers=()),
            note="As Metadata, without topics (KIP-700).",
        ),
    )
)
"""Every API that is offered, by key."""


class AskedApi(IntEnum):
    """The APIs that are asked of a cluster and served by none of our nodes."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    CREATE_TOPICS = 19
    DESCRIBE_QUORUM = 55


ASKED: Final = APIS.having(
    # Later versions name topics by their ids; every cluster without ZooKeeper has these.
    declare(
        AskedApi.PRODUCE,
        9,
        9,
        refuse=refusing_with(responses=()),
        note="Writes records (KIP-98).",
    ),
    declare(
        AskedApi.FETCH,
        12,
        12,
        refuse=refusing_with(responses=()),
        note="Reads records, and waits for new ones.",
    ),
    declare(
        AskedApi.LIST_OFFSETS,
        6,
        7,
        refuse=refusing_with(topics=()),
        note="Tells where a partition ends.",
    ),
    declare(
        AskedApi.CREATE_TOPICS,
        5,
        7,
        refuse=refusing_with(topics=()),
        note="Creates topics (KIP-4).",
    ),
    declare(
        AskedApi.DESCRIBE_QUORUM,
        0,
        2,
        refuse=refusing_with(topics=()),
        note="The controllers of a cluster, and how far its metadata log is committed (KIP-595).",
    ),
)
"""Every API that our client speaks."""

response_type: Final = APIS.response_type
refusal: Final = APIS.refusal
