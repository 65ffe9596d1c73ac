#!/bin/bash
# Allow what docs/how-to/kafka-4.md says: the gateway's user to serve tokens, alice to use topics of her own.
set -euo pipefail
acls() {
    "${KAFKA_BIN:-/opt/kafka/bin}/kafka-acls.sh" --bootstrap-server kafka-1:9092,kafka-2:9092,kafka-3:9092 \
        --command-config /etc/kafka-dt/cluster/admin.properties --add "$@"
}
acls --allow-principal User:gateway --operation Describe --cluster
acls --allow-principal User:gateway --operation DescribeTokens --user-principal '*'
acls --allow-principal User:gateway --operation Read --operation Write --operation Create --operation DescribeConfigs \
    --topic __kafka_dt_revocations
acls --allow-principal User:alice --operation All --topic alice- --group alice- --resource-pattern-type prefixed
