"""DescribeConfigs v1-4, ListGroups v0-5, DescribeClientQuotas v0-1, AlterClientQuotas v0-1: a node has none of these.

Tools ask them on the way to something else: `kafka-configs.sh --describe --entity-type users` reads quotas before it
reads SCRAM users, and tools that list topics or brokers read configurations and groups. So the answer is an empty one,
where a client that is not served would see its connection closed. A change of quotas is refused in words.

The rights that a broker asks for are asked for here.

Source: KIP-133, KIP-546; kafka.server.ConfigHelper.handleDescribeConfigsRequest, kafka.server.KafkaApis
(handleListGroupsRequest, handleDescribeClientQuotasRequest, handleAlterClientQuotasRequest).
"""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from kafka_dt.server.handlers import RequestContext, ServedApi
from kafka_dt_protocol import ApiKey, build, refused_configs, refused_quotas

# Types of resources that have a configuration (org.apache.kafka.common.config.ConfigResource).
TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8

_NO_QUOTAS: Final = "kafka-dt has no client quotas"
_NO_CONFIGURATION: Final = "kafka-dt has no configurations of this type"


class ToolHandlers:
    """Answers what command line tools ask on their way."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def served(self) -> tuple[ServedApi, ...]:
        """Give what serves each API."""
        return (
            ServedApi(ApiKey.DESCRIBE_CONFIGS, self.describe_configs),
            ServedApi(ApiKey.LIST_GROUPS, self.list_groups),
            ServedApi(ApiKey.DESCRIBE_CLIENT_QUOTAS, self.describe_quotas),
            ServedApi(ApiKey.ALTER_CLIENT_QUOTAS, self.alter_quotas),
        )

    async def describe_configs(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeConfigs."""
        caller, operation = context.caller, AclOperation.DESCRIBE_CONFIGS
        of_cluster = self._authorizer.allows_cluster(caller, operation)
        of_topic = self._authorizer.check(caller, operation, ResourceType.TOPIC)

        def reason(resource: Any) -> tuple[ErrorCode, str | None]:
            if resource.resource_type in {BROKER, BROKER_LOGGER}:
                return ErrorCode.none if of_cluster else ErrorCode.cluster_authorization_failed, None
            if resource.resource_type != TOPIC:
                return ErrorCode.invalid_request, _NO_CONFIGURATION
            if not of_topic(resource.resource_name):
                return ErrorCode.topic_authorization_failed, None
            return ErrorCode.unknown_topic_or_partition, None

        return refused_configs(context.response_type, body, reason)

    async def list_groups(self, context: RequestContext, _body: Any) -> Any:
        """Answer a ListGroups."""
        return build(context.response_type, error_code=ErrorCode.none, groups=())

    async def describe_quotas(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeClientQuotas."""
        if not self._authorizer.allows_cluster(context.caller, AclOperation.DESCRIBE_CONFIGS):
            return context.refusal(body, ErrorCode.cluster_authorization_failed)
        return build(context.response_type, error_code=ErrorCode.none, error_message=None, entries=())

    async def alter_quotas(self, context: RequestContext, body: Any) -> Any:
        """Answer an AlterClientQuotas."""
        if not self._authorizer.allows_cluster(context.caller, AclOperation.ALTER_CONFIGS):
            return context.refusal(body, ErrorCode.cluster_authorization_failed)
        return refused_quotas(context.response_type, body, ErrorCode.invalid_request, _NO_QUOTAS)
