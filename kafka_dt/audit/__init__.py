"""Audit events: what they are, and how they get to files and to a Kafka topic without delaying a request.

Read `event.py` first: the schema. The server calls `recorder.py`; `delivery.py` is a queue and the thread that empties
it into a sink, `files.py` or `topic.py`. Nothing here knows what a token or a login is: the callers say what happened.
"""

from kafka_dt.audit.event import VERSION, AuditEvent, EventType, Outcome, RefusalReason

__all__ = ["VERSION", "AuditEvent", "EventType", "Outcome", "RefusalReason"]
