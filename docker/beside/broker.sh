#!/bin/bash
# Start a broker on a ZooKeeper, in an image with Kafka's scripts in KAFKA_BIN:
#
#   broker.sh ZOOKEEPER ADDRESS ADDRESS-ON-THE-HOST [SETTING=VALUE ...]
set -euo pipefail
zookeeper=$1 inside=$2 outside=$3
bin=${KAFKA_BIN:-/opt/kafka/bin}
secrets=/etc/kafka-dt/secrets
scram='org.apache.kafka.common.security.scram.ScramLoginModule required;'
# The listener of the host has the port that is published, on the address of this container.
internal=INTERNAL://localhost:9094
configuration=$(mktemp)
{
    cat "$(dirname "$0")/broker.properties"
    echo "zookeeper.connect=$zookeeper"
    echo "listeners=SASL_PLAINTEXT://$inside,HOST://${inside%:*}:${outside##*:},$internal"
    echo "advertised.listeners=SASL_PLAINTEXT://$inside,HOST://$outside,$internal"
    echo "delegation.token.secret.key=$(cat "$secrets/token.key")"
    for listener in sasl_plaintext host; do
        echo "listener.name.$listener.plain.sasl.jaas.config=$(cat "$secrets/users.jaas")"
        echo "listener.name.$listener.scram-sha-256.sasl.jaas.config=$scram"
        echo "listener.name.$listener.scram-sha-512.sasl.jaas.config=$scram"
    done
    # Kafka's image has a volume of its own in /var/lib/kafka, which a broker would take for a topic.
    echo "log.dirs=/var/lib/kafka/broker"
    printf '%s\n' "${@:4}"
} >"$configuration"
exec "$bin/kafka-server-start.sh" "$configuration"
