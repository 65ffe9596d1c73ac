"""The command line: `kafka-dt COMMAND`.

Read `serve.py` first: a small command. A new command is one file, and one line in the table of `main` below or of its
group (`acl/`, `keys/`, `pipeline/`, `token/`, `upstream/`). Its module is imported when the command is called:
`kafka-dt token` needs nothing of the server. Its help ends with an `example`. Commands share `options.py`, `output.py`
and `progress.py`; for work on ZooKeeper with the settings of a node also `node_options.py` and `bulk_run.py`.

Exit status: 0; 1 when the operation was refused or failed, with one line on stderr; 2 for wrong usage; 130 after
Ctrl-C. An unforeseen error is a bug and shows its traceback.

Source: docs/command-line.md.
"""

from __future__ import annotations

import difflib
import errno
import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from socket import gaierror
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.extras import installed_by
from kafka_dt.processes.core_dumps import forbid_core_dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORESEEN: Final = {
    "kafka_dt.client": "TokenClientError",
    "kafka_dt.config": "ConfigError",
    "kafka_dt.pipeline.errors": "PipelineError",
    "kafka_dt.processes.supervisor": "WorkerFailed",
    "kafka_dt.zookeeper.errors": "ZooKeeperError",
}
"""Module -> its error, whose text is for the user. A module that was not imported has raised none."""
_OF_THE_SYSTEM: Final = frozenset(
    {
        errno.EACCES,
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
        errno.EAGAIN,
        errno.ECONNREFUSED,
        errno.EHOSTUNREACH,
        errno.EMFILE,
        errno.ENETUNREACH,
        errno.ENFILE,
        errno.ENOENT,
        errno.ENOMEM,
        errno.EPERM,
        errno.ETIMEDOUT,
    }
)
"""What an operator can put right (rights, addresses, networks, limits) where the error names no file; other errors are
bugs."""
_FULL: Final = frozenset({errno.EDQUOT, errno.EFBIG, errno.ENOSPC})
"""How an output says that it takes nothing more."""
_SPARK: Final = frozenset({"jinja2", "plotly", "pyarrow", "py4j", "pyspark"})
"""The packages of the extra `spark`."""


INTERRUPTED: Final = 130
"""The exit status of work that Ctrl-C or SIGTERM ended."""


class Interrupted(click.ClickException):
    """Ctrl-C ended the command."""

    exit_code = INTERRUPTED


class SuggestingGroup(click.Group):
    """A group that says which of its commands was probably meant by one that there is not."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None


class LazyGroup(SuggestingGroup):
    """A group whose commands are imported when they are needed; foreseen errors are one line and exit status 1.

    lazy_commands: name -> `module:attribute` of each command
    """

    def __init__(self, *, lazy_commands: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return sorted(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Import and return a command, None when there is none of this name."""
        if cmd_name not in self._lazy_commands:
            return None
        module, _, attribute = self._lazy_commands[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def main(self, *arguments: Any, **more: Any) -> Any:
        """Run as a program, the arguments being click's; an output that cannot be written to is an error of one line.

        Characters that the output does not have are escaped: what a command has made must not be lost with them.
        """
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                with suppress(OSError):  # the file behind it became another one after the start
                    stream.reconfigure(errors="backslashreplace")
        try:
            return super().main(*arguments, **more)
        except OSError as error:
            if not _is_of_output(error):
                raise
            click.echo(f"Error: the output cannot be written: {error.strerror}", err=True)
            sys.exit(1)
        finally:
            _give_up_output()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None
        except click.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # at a question
                raise Interrupted("interrupted") from None
            raise
        except ImportError as error:
            # Spark's own error about pyarrow has no name; its module identifies it.
            if (error.name or type(error).__module__).partition(".")[0] not in _SPARK:
                raise
            raise click.ClickException(
                f"{ctx.invoked_subcommand} needs packages of an extra; {installed_by('spark')} ({error})"
            ) from error
        except OSError as error:
            if _is_of_output(error) or not (line := _of_the_system(error)):
                raise  # the former to `main`, as the help's
            raise click.ClickException(line) from error
        except _foreseen() as error:
            raise click.ClickException(" ".join(str(error).split()) or type(error).__name__) from error


def _of_the_system(error: OSError) -> str:
    """Say for people what the system refuses, so that they can put it right; empty if they cannot."""
    if isinstance(error.filename, str | bytes):
        return f"{click.format_filename(error.filename)}: {error.strerror}"
    return str(error) if error.errno in _OF_THE_SYSTEM or isinstance(error, gaierror) else ""


def _is_of_output(error: OSError) -> bool:
    """Say whether an error is of an output that takes nothing more; what writes to a file names it in its errors."""
    return error.errno in _FULL and error.filename is None


def _give_up_output() -> None:
    """See that Python does not complain at the end of what the output did not take, and was told already."""
    if sys.stdout is None or sys.stdout.closed:
        return
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _foreseen() -> tuple[type[Exception], ...]:
    modules = ((sys.modules.get(module), name) for module, name in _FORESEEN.items())
    return tuple(getattr(module, name) for module, name in modules if module is not None)


def _print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        connection = import_module("kafka_dt_protocol.connection")
        form = "interpreted" if str(connection.__file__).endswith(".py") else "compiled"
        click.echo(f"kafka-dt, version {version('kafka-dt')} ({form})")
        context.exit()


@click.group(
    cls=LazyGroup,
    lazy_commands={
        "accept-restore": "kafka_dt.cli.accept_restore:accept_restore",
        "acl": "kafka_dt.cli.acl:acl",
        "audit": "kafka_dt.cli.audit:audit",
        "check": "kafka_dt.cli.check.command:check",
        "completion": "kafka_dt.cli.completion:completion",
        "context": "kafka_dt.cli.context:context",
        "health": "kafka_dt.cli.health:health",
        "keys": "kafka_dt.cli.keys:keys",
        "pipeline": "kafka_dt.cli.pipeline:pipeline",
        "reload": "kafka_dt.cli.reload:reload",
        "run": "kafka_dt.cli.run:run",
        "serve": "kafka_dt.cli.serve:serve",
        "token": "kafka_dt.cli.token:token",
        "upstream": "kafka_dt.cli.upstream:upstream",
        "user": "kafka_dt.cli.user:user",
        "zookeeper": "kafka_dt.cli.zookeeper:zookeeper",
    },
    epilog="\b\nExamples:\n  kafka-dt run\n  kafka-dt token create --help",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option(
    "--context",
    metavar="NAME",
    envvar="KAFKA_DT_CONTEXT",
    help="The context with the servers and the login for this command. [default: that of kafka-dt context use]",
)
@click.pass_context
def main(ctx: click.Context, *, context: str | None) -> None:
    """Serve, create and manage delegation tokens for Apache Kafka (KIP-48)."""
    forbid_core_dumps()
    ctx.obj = context
