#!/bin/bash
# Start a broker: `broker.sh ID`, in an image with Kafka's scripts in KAFKA_BIN.
#
# Makes the broker's data directory once, with the gateway's user. All three brokers do, with the same password: the
# first leader of the controllers writes the user into the metadata log.
set -euo pipefail
bin=${KAFKA_BIN:-/opt/kafka/bin}
secrets=/etc/kafka-dt/cluster
configuration=$(mktemp)
{
    cat "$(dirname "$0")/broker.properties" "$secrets/broker.properties"
    echo "node.id=$1"
    echo "listeners=SASL_PLAINTEXT://kafka-$1:9092,CONTROLLER://kafka-$1:9093"
    echo "log.dirs=/var/lib/kafka/$1"
} >"$configuration"
# The tool reads arguments from a file, too, which other users cannot read as they can a command line.
"$bin/kafka-storage.sh" format --ignore-formatted --config "$configuration" "@$secrets/format.arguments"
exec "$bin/kafka-server-start.sh" "$configuration"
