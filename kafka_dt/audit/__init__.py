"""Audit events: what they are, and how they get to files and to a Kafka topic without delaying a request.

Read `event.py` first: the schema. `log.py` is what the server talks to, a queue and a thread that empties it;
`files.py` and `topic.py` are where the thread writes to. Nothing here knows what a token or a login is: the callers
make the events.
"""

from kafka_dt.audit.event import VERSION, AuditEvent, EventType, Outcome, RefusalReason

__all__ = ["VERSION", "AuditEvent", "EventType", "Outcome", "RefusalReason"]
