"""What the README and the manual tell people to type exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise, takewhile

import click
import pytest

from kafka_dt.cli import main
from kafka_dt.client.config import client_keys
from kafka_dt.config.settings import options
from kafka_dt.config_providers import is_of_providers
from kafka_dt.pipeline.alerts.destinations import check_settings
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.docs.documents import ROOT, Block, blocks, documents, read

PAGES = documents()
LIBRDKAFKA_KEYS = frozenset({"sasl.username", "sasl.password"})
OF_A_LISTENER = re.compile(r"listener\.name\.\w+\.((plain|scram-sha-\d+|gssapi|oauthbearer)\.)?")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


def of_all_pages(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page, language)]


def commands() -> list[list[str]]:
    """The commands of all shell blocks, without variables before and redirections behind them."""
    words = [words for block in of_all_pages("sh") for words in _lines(block.text.replace("\\\n", " "))]
    return [words for words in words if words and "=" not in words[0]]


def _lines(text: str) -> Iterator[list[str]]:
    """Give the words of each line; what is quoted may go on in the next one."""
    line = ""
    for part in text.splitlines():
        line += part
        with suppress(ValueError):  # no closing quotation
            yield shlex.split(line, comments=True)
            line = ""
    assert not line, line


def ours() -> list[list[str]]:
    """The words of each command of ours, without `--context NAME`, up to where another program begins."""
    found = [words[1:] for words in commands() if words[0].removeprefix(".venv/bin/") == "kafka-dt"]
    found = [list(takewhile(lambda word: word != "|", words)) for words in found]
    return [words[2:] if words[0] == "--context" else words for words in found]


def test_the_readme_leads_with_the_two_commands() -> None:
    first = blocks("README.md", "sh")[0]
    assert [line.split("#")[0].strip() for line in first.text.splitlines()] == ["make run", "make test"]
    before = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[: first.line]
    assert not any(line.startswith("## ") for line in before)


@pytest.mark.parametrize("target", sorted({words[1] for words in commands() if words[0] == "make"}))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:.*## ", MAKEFILE, re.MULTILINE)


def test_no_page_tells_a_password_that_only_the_tests_know() -> None:
    told = [(page, secret) for page in PAGES for secret in (SECRET_KEY, *USERS.values()) if secret in read(page)]
    assert told == []


def test_extras_are_installed_from_a_checkout_as_no_package_index_has_a_release() -> None:
    # That page adds extras to a release that is installed from files.
    pages = [page for page in PAGES if page != "docs/how-to/install.md"]
    texts = [read(page) for page in pages] + [path.read_text("utf-8") for path in (ROOT / "kafka_dt").rglob("*.py")]
    assert not [text for text in texts if "kafka-dt[" in text]
    named = {
        name
        for text in texts
        for name in re.findall(r"""pip install ./protocol '\.\[([\w-]+)]'|installed_by\(['"]([\w-]+)""", text)
    }
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {"spark", "embedded", "kerberos", "audit-kafka"} <= {a or b for a, b in named} <= declared.keys()


@pytest.mark.parametrize("words", ours(), ids=" ".join)
def test_our_commands_and_their_options_exist(words: list[str]) -> None:
    command: click.Command | None = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        command = command.get_command(context, words[0])
        words = words[1:]
    assert command is not None
    known = {name: parameter for parameter in command.params for name in parameter.opts}
    for word in words:
        if word.startswith("--") and word != "--":
            assert word.split("=")[0] in known
    settings = {declared.key for _, declared in options()}
    for flag, value in pairwise(words):
        if flag == "--override":
            assert value.partition("=")[0] in settings


def test_the_services_of_docker_compose_exist() -> None:
    named = [words[-1] for words in commands() if words[:3] == ["docker", "compose", "run"]]
    assert named
    for service in named:
        assert re.search(rf"^  {service}:$", COMPOSE, re.MULTILINE)


@pytest.mark.parametrize("block", of_all_pages("properties"), ids=str)
def test_settings_exist(block: Block) -> None:
    known = {declared.key for _, declared in options()}
    keys = re.findall(r"^([a-z][\w.\-]*)=", block.text, re.MULTILINE)
    assert keys
    if block.text.startswith("# alerts.properties"):
        check_settings(dict.fromkeys(keys, ""))
        return
    for key in (OF_A_LISTENER.sub("", each) for each in keys):
        assert key in known | client_keys() | LIBRDKAFKA_KEYS or is_of_providers(key)


@pytest.mark.parametrize("block", of_all_pages("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)]*)?\)", read(page))
    missing = [target for target in targets if not (folder / target).exists()]
    assert not missing
