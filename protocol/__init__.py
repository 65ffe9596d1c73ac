"""The Kafka wire protocol without I/O: bytes <-> values, and what may follow what."""
