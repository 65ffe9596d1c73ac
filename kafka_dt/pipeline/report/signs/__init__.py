"""Signs of theft: what a client with a stolen token, or a client that looks for one, does differently.

    findings = look_for(SIGNS, Observed.of(events, usage, lives, deeds=deeds, zones=zones, work=store.work))

Read `sign.py` first, then one sign: each is a module with its rule, its thresholds, its words and its commands. `SIGNS`
is the table of them; page, JSON, Parquet output, demo and manual follow from it. `finding.py` is what a rule returns.

A finding is a reason to look, not a proof. All signs see what a node sees: behind a proxy that hides addresses, every
client is in one place.
"""

from __future__ import annotations

from typing import Final

from kafka_dt.pipeline.report.signs.after_pause import AFTER_PAUSE
from kafka_dt.pipeline.report.signs.dormant_principal import DORMANT_PRINCIPAL
from kafka_dt.pipeline.report.signs.ended_by_command import ENDED_BY_COMMAND
from kafka_dt.pipeline.report.signs.ended_for_many import ENDED_FOR_MANY
from kafka_dt.pipeline.report.signs.finding import Evidence, Finding, Severity, SubjectType
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL
from kafka_dt.pipeline.report.signs.guessed_hmac import GUESSED_HMAC
from kafka_dt.pipeline.report.signs.guessed_password import GUESSED_PASSWORD
from kafka_dt.pipeline.report.signs.hoarded_tokens import HOARDED_TOKENS
from kafka_dt.pipeline.report.signs.job_elsewhere import JOB_ELSEWHERE
from kafka_dt.pipeline.report.signs.last_token import LAST_TOKEN
from kafka_dt.pipeline.report.signs.lone_machine import LONE_MACHINE
from kafka_dt.pipeline.report.signs.new_describer import NEW_DESCRIBER
from kafka_dt.pipeline.report.signs.new_mechanism import NEW_MECHANISM
from kafka_dt.pipeline.report.signs.new_requester import NEW_REQUESTER
from kafka_dt.pipeline.report.signs.off_hours_burst import OFF_HOURS_BURST
from kafka_dt.pipeline.report.signs.off_schedule import OFF_SCHEDULE
from kafka_dt.pipeline.report.signs.others_program import OTHERS_PROGRAM
from kafka_dt.pipeline.report.signs.rare_library import RARE_LIBRARY
from kafka_dt.pipeline.report.signs.rare_zone import RARE_ZONE
from kafka_dt.pipeline.report.signs.refused_changes import REFUSED_CHANGES
from kafka_dt.pipeline.report.signs.requester_elsewhere import REQUESTER_ELSEWHERE
from kafka_dt.pipeline.report.signs.sign import Observed, Sign, Signs, look_for
from kafka_dt.pipeline.report.signs.sprayed_passwords import SPRAYED_PASSWORDS
from kafka_dt.pipeline.report.signs.stolen_token import STOLEN_TOKEN
from kafka_dt.pipeline.report.signs.strange_administration import STRANGE_ADMINISTRATION
from kafka_dt.pipeline.report.signs.strange_login import STRANGE_LOGIN
from kafka_dt.pipeline.report.signs.tokens_together import TOKENS_TOGETHER
from kafka_dt.pipeline.report.signs.two_places import TWO_PLACES
from kafka_dt.pipeline.report.signs.unknown_id_burst import UNKNOWN_ID_BURST
from kafka_dt.pipeline.report.signs.use_after_password_change import USE_AFTER_PASSWORD_CHANGE
from kafka_dt.pipeline.report.signs.use_after_revocation import USE_AFTER_REVOCATION

SIGNS: Final[Signs] = (
    STOLEN_TOKEN,
    RARE_ZONE,
    LONE_MACHINE,
    RARE_LIBRARY,
    OTHERS_PROGRAM,
    OFF_SCHEDULE,
    AFTER_PAUSE,
    OFF_HOURS_BURST,
    DORMANT_PRINCIPAL,
    LAST_TOKEN,
    TWO_PLACES,
    TOKENS_TOGETHER,
    USE_AFTER_REVOCATION,
    USE_AFTER_PASSWORD_CHANGE,
    UNKNOWN_ID_BURST,
    GUESSED_HMAC,
    GUESSED_PASSWORD,
    FOREIGN_RENEWAL,
    NEW_REQUESTER,
    REQUESTER_ELSEWHERE,
    JOB_ELSEWHERE,
    HOARDED_TOKENS,
    NEW_DESCRIBER,
    NEW_MECHANISM,
    STRANGE_LOGIN,
    STRANGE_ADMINISTRATION,
    REFUSED_CHANGES,
    SPRAYED_PASSWORDS,
    ENDED_BY_COMMAND,
    ENDED_FOR_MANY,
)
"""What a report looks for unless it is told otherwise, in the order of the page."""

__all__ = [
    "SIGNS",
    "Evidence",
    "Finding",
    "Observed",
    "Severity",
    "Sign",
    "Signs",
    "SubjectType",
    "look_for",
]
