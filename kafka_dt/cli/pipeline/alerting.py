"""The options by which a command sends alerts, and the sending.

@click.command()
@alert_options
def command(*, alerting: Alerting) -> None:
    told = alerting.tell(cases, folder)

Destinations are made before the command does anything else, so that a wrong one is wrong usage.

Source: kafka_dt/pipeline/alerts
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from kafka_dt.cli.options import EXISTING_FILE, read_properties, together
from kafka_dt.cli.output import counted
from kafka_dt.pipeline.alerts import (
    KINDS,
    PAUSES_S,
    AlertError,
    Delivery,
    Destination,
    Failure,
    History,
    Memory,
    destination,
)
from kafka_dt.pipeline.alerts.destinations import check_settings
from kafka_dt.pipeline.alerts.forms import FORMS, Form, as_case
from kafka_dt.pipeline.cases import SEVERITIES, Case

MEMORY: Final = "alerts.json"
"""The name of the memory of what was told, in the folder of a report."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was sent."""

    sent: int
    failures: Sequence[Failure]

    def as_document(self) -> dict[str, Any]:
        """Give it as JSON's types."""
        failed = [{"to": each.name, "reason": each.reason, "left": each.left} for each in self.failures]
        return {"sent": self.sent, "failed": failed}

    def raise_failure(self) -> None:
        """Raise an error that names what failed, if anything did."""
        if self.failures:
            shown = "; ".join(f"{each.name} ({counted(each.left, 'alert')}): {each.reason}" for each in self.failures)
            raise click.ClickException(
                f"The report was made. The next one sends the alerts that were not taken. {shown}"
            )


@dataclass(frozen=True, slots=True)
class Alerting:
    """Where alerts go."""

    destinations: Sequence[Destination]
    level: str
    memory: Path | None

    def tell(
        self,
        cases: Sequence[Case],
        folder: Path,
        *,
        pauses_s: Sequence[float] = PAUSES_S,
        history: History | None = None,
    ) -> Told | None:
        """Tell the destinations of what they do not know yet; None if there are none.

        Args:
            cases: those that there are.
            folder: has the memory, unless an option names it.
            pauses_s: how long to wait before each further try of a message.
            history: of a process that tells again and again.

        Raises:
            AlertError: the memory cannot be used.
        """
        if not self.destinations:
            return None
        memory = Memory.of(self.memory or folder / MEMORY)
        delivery = Delivery(memory, now=datetime.now(UTC), sleep=time.sleep, pauses_s=pauses_s, history=history)
        failures = delivery.deliver(cases, self.destinations, self.level)
        return Told(delivery.sent, failures)


def alert_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of alerts: the argument `alerting`."""

    @wraps(command)
    def with_alerting(
        *,
        alert: tuple[str, ...],
        alert_on: str,
        alert_format: tuple[str, ...],
        alert_config: Path | None,
        alert_memory: Path | None,
        **arguments: Any,
    ) -> None:
        settings = {} if alert_config is None else read_properties(alert_config)
        alerting = Alerting(_destinations(alert, settings, _forms(alert_format)), alert_on, alert_memory)
        command(alerting=alerting, **arguments)

    return _options(with_alerting)


_options: Final = together(
    click.option(
        "--alert",
        multiple=True,
        metavar="KIND:TARGET",
        help="Send an alert of each case that is new: webhook:URL, file:PATH, kafka:TOPIC, syslog:udp://HOST:PORT (or "
        "tcp://, tls://, or a path), email:ADDRESS. May be given several times.",
    ),
    click.option(
        "--alert-on",
        type=click.Choice(SEVERITIES),
        default="medium",
        show_default=True,
        help="Send alerts of cases of this severity and of higher ones.",
    ),
    click.option(
        "--alert-format",
        multiple=True,
        metavar="[KIND=]FORM",
        help=f"The form of alerts ({', '.join(FORMS)}), for all destinations or for those of a kind: syslog=cef. May "
        "be given several times. [default: json; mail is text]",
    ),
    click.option(
        "--alert-config",
        type=EXISTING_FILE,
        metavar="FILE",
        help="Settings of the destinations, as properties; a value may be file:F or env:N.",
    ),
    click.option(
        "--alert-memory",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"The file that remembers what was sent. [default: {MEMORY} in --to]",
    ),
)


def _destinations(given: Sequence[str], settings: Mapping[str, str], forms: Mapping[str, Form]) -> list[Destination]:
    try:
        check_settings(settings)
    except AlertError as error:
        raise click.BadParameter(str(error), param_hint="'--alert-config'") from None
    made = []
    for each in given:
        kind = each.partition(":")[0]
        try:
            made.append(destination(each, settings, lambda: datetime.now(UTC), forms.get(kind, forms[""])))
        except AlertError as error:
            named = f"{kind}:...: " if kind in KINDS else ""
            raise click.BadParameter(f"{named}{error}", param_hint="'--alert'") from None
    return made


def _forms(given: Sequence[str]) -> dict[str, Form]:
    """Give the forms by the kind of the destination; the empty text is for all others."""
    forms: dict[str, Form] = {"": as_case}
    for each in given:
        kind, _, form = each.rpartition("=")
        if form not in FORMS or kind not in {"", *KINDS}:
            raise click.BadParameter(
                f"{each!r} is not of the form [KIND=]FORM: kinds are {', '.join(KINDS)}, forms {', '.join(FORMS)}",
                param_hint="'--alert-format'",
            )
        forms[kind] = FORMS[form]
    return forms
