"""Audit events: what they are, and how they get to files and to a Kafka topic without delaying a request.

Read `event.py` first: the schema. The server calls `recorder.py`. `delivery.py` is the queue of a sink; `threaded.py`
empties it into `files.py` or `topic.py`, and `synced.py` into `chained_files.py`, for strict mode. Nothing here knows
what a token or a login is: the callers say what happened.
"""

from kafka_dt.audit.event import VERSION, AuditEvent, EventType, Outcome, RefusalReason

__all__ = ["VERSION", "AuditEvent", "EventType", "Outcome", "RefusalReason"]
