"""Cases: findings that belong together, so that an operator has one thing to look at and to end.

    cases = form_cases(sightings, principals_at)
    cases[0].severity, cases[0].owners, cases[0].ending

Read `forming.py` first: it says which findings are one case. `sighting.py` is a finding with its id, `case.py` what is
formed of them.

Nothing here needs Spark, so a stream can form cases as well as a report.

Source: splunk/rba ("risk-based alerting"); docs/decisions/0040-how-cases-are-formed.md
"""

from __future__ import annotations

from kafka_dt.pipeline.cases.case import Advice, Case
from kafka_dt.pipeline.cases.forming import form_cases
from kafka_dt.pipeline.cases.metrics import metrics_text
from kafka_dt.pipeline.cases.severity import SEVERITIES, reaches
from kafka_dt.pipeline.cases.sighting import Found, Sighting, finding_id

__all__ = ["SEVERITIES", "Advice", "Case", "Found", "Sighting", "finding_id", "form_cases", "metrics_text", "reaches"]
