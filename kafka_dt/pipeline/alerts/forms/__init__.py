"""The forms in which alerts are written: our JSON for a case, and the forms of SIEMs for each finding.

    messages = FORMS["ocsf"](alert)

Read `message.py` first: what a form makes. `ocsf.py`, `ecs.py` and `cef.py` are the forms of SIEMs.

A SIEM correlates by itself, so its forms have a message for each new finding, with the case's id in it. A message has
the id of its finding, which stays the same whenever it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.forms.cef import as_cef
from kafka_dt.pipeline.alerts.forms.ecs import as_ecs
from kafka_dt.pipeline.alerts.forms.message import Message
from kafka_dt.pipeline.alerts.forms.ocsf import as_ocsf

Form = Callable[[Alert], Sequence[Message]]
"""Writes an alert."""


def as_case(alert: Alert) -> tuple[Message]:
    """Write an alert as one message: its case, with all findings."""
    return (Message(alert.id, alert.case.severity, alert.as_json()),)


FORMS: Final[Mapping[str, Form]] = {"json": as_case, "ocsf": as_ocsf, "ecs": as_ecs, "cef": as_cef}

__all__ = ["FORMS", "Form", "Message", "as_case"]
