"""`kafka-dt completion bash|zsh|fish`: the script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from kafka_dt.cli import main
from kafka_dt.cli.options import example

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_KAFKA_DT_COMPLETE"
"""The variable by which the script asks for completions; click makes it of the program's name."""


@example(
    "kafka-dt completion bash > ~/.local/share/bash-completion/completions/kafka-dt",
    "kafka-dt completion zsh > ~/.zfunc/_kafka-dt",
    "kafka-dt completion fish > ~/.config/fish/completions/kafka-dt.fish",
)
@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(*, shell: str) -> None:
    """Print the script by which a shell completes commands.

    bash needs its package bash-completion. For zsh, put ~/.zfunc into fpath before compinit.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - it is one of the choices
    click.echo(kind(main, {}, "kafka-dt", _VARIABLE).source())
