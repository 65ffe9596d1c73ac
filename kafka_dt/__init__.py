"""kafka-dt: a delegation token authority (KIP-48) that every Kafka client can use."""
