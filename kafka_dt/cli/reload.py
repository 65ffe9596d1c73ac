"""`kafka-dt reload`: have a running node read its settings again.

Source: docs/how-to/operate.md#change-settings-without-a-restart.
"""

from __future__ import annotations

from pathlib import Path

import click

from kafka_dt.cli.options import config_file_option, example
from kafka_dt.processes.control import NoAnswer, NotRunning, ask


@example("kafka-dt reload --config /etc/kafka-dt/server.properties")
@click.command(short_help="Have a running node read its settings again.")
@config_file_option("The file that the node was started with, by the same path.", required=True)
def reload(config: Path) -> None:
    """Have the node of this machine that runs on a file read it again, with the files that it names.

    Prints the settings that have changed, and those that change only with a restart. If the node cannot use the file,
    it keeps all its settings, and the exit status is 1.
    """
    try:
        answer = ask(config)
    except (NoAnswer, NotRunning) as error:
        raise click.ClickException(str(error)) from None
    if not answer.done:
        raise click.ClickException(answer.text)
    click.echo(answer.text)
