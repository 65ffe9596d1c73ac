"""Alerts: tell people and programs of cases, at least once, and of each finding once if all goes well.

    destinations = [destination("webhook:https://soc.example.com/hook", {})]
    failures = Delivery(Memory.of(path), now=now, sleep=time.sleep).deliver(cases, destinations, level="high")

Read `delivery.py` first: which cases are told, how often it tries, and what is remembered. `destinations.py` makes a
destination of what a user writes; each has a module of its own. `alert.py` is what is sent.

Nothing here needs Spark: a stream delivers its cases as a report does.
"""

from __future__ import annotations

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.delivery import PAUSES_S, Delivery, Failure, History
from kafka_dt.pipeline.alerts.destination import AlertError, Destination, NotDelivered
from kafka_dt.pipeline.alerts.destinations import KINDS, destination
from kafka_dt.pipeline.alerts.memory import Memory

__all__ = [
    "KINDS",
    "PAUSES_S",
    "Alert",
    "AlertError",
    "Delivery",
    "Destination",
    "Failure",
    "History",
    "Memory",
    "NotDelivered",
    "destination",
]
