"""Citations lead somewhere: the `Source:` paragraphs of docstrings, and the links of the manual with their anchors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.docs.documents import ROOT, documents, read
from tests.unit.docs.names import problem

FOLDERS = ("kafka_dt", "protocol", "benchmarks", "checks", "docker", "docs", "tests")
NO_CLASSES = frozenset(
    {"ZooKeeper", "PyPI", "DevTools", "AIOKafkaProducer", "DelegationTokenRenewer", "CloudTrail", "HashiCorp"}
)
"""Names that look like classes of Kafka: products, and classes of aiokafka and Hadoop."""

_PARAGRAPH = re.compile(r"^Source:(.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_THERE = re.compile(r"its `[^`]*`")  # a path in another project
_PLACE = re.compile(r"(?<![\w./-])(?:(?:kafka_dt|protocol|tests|docs|checks|benchmarks)/[\w./-]*[\w/])(?:#([\w-]+))?")
_OWN_MODULE = re.compile(r"(?<![\w./])kafka_dt(?:_protocol)?(?:\.\w+)+")
_PROPOSAL = re.compile(r"(?<![\w-])(?:KIP|RFC)(?!s\b)[\w'-]*(?: \d+)?", re.IGNORECASE)
_WELL_FORMED = re.compile(r"KIP-[1-9]\d{0,3}(?:'s)?|RFC [1-9]\d{2,4}(?:'s)?")
_KAFKA = re.compile(r"(?<![\w./])(?:org\.apache\.)?kafka\.[\w.]+")
_FULL_PATH = re.compile(r"(?:org\.apache\.)?kafka(?:\.[a-z]\w*)*(?:\.[A-Z]\w*(?:\.\w+)*)?")
_CAMEL = re.compile(r"(?<![\w./-])[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b(?!\.json)")
_ASIDE = re.compile(r"\"[^\"]*\"|`[^`]*`|\([^()]*\)")
_DECISION = re.compile(r"\bdecisions?[ /](\d{4})\b", re.IGNORECASE)
_FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")
_CITES = re.compile(rf"Source:|{_FILE.pattern}")
"""Whether a file's text can have a paragraph `Source:` or the name of a file."""
_ABSENT = re.compile(r"\b(?:DESIGN|BEHAVIOUR|STYLE)\b")
"""Papers that stand beside the repository."""
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)


@cache
def docstrings() -> list[tuple[Path, str]]:
    """Give each docstring of a file that cites something, with the file: to parse the others would take seconds."""
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if "_build" not in path.parts)
    return [
        (path, docstring)
        for path in files
        if _CITES.search(text := path.read_text(encoding="utf-8"))
        for node in scopes(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (docstring := ast.get_docstring(node))
    ]


def scopes(node: ast.AST) -> Iterator[ast.AST]:
    """Give what may have a docstring, and the blocks in between; an expression has none."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from scopes(child)


def sources() -> list[tuple[str, str]]:
    """Give each `Source:` paragraph with its file."""
    return [
        (str(path.relative_to(ROOT)), " ".join(text.split()))
        for path, docstring in docstrings()
        for text in _PARAGRAPH.findall(docstring)
    ]


@cache
def anchors(page: str) -> frozenset[str]:
    """Give the anchors of a page, as MyST and GitHub make them of headings; of a picture or program there are none."""
    if not page.endswith(".md"):
        return frozenset()
    headings = re.findall(r"^#{1,3} +(.+?)$", _FENCE.sub("", read(page)), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain)


def faults(source: str) -> Iterator[str]:
    """Say what is wrong with a `Source:` paragraph."""
    for match in _PLACE.finditer(_THERE.sub("", source)):
        place, anchor = match[0].partition("#")[0], match[1]
        if not (ROOT / place).exists():
            yield f"{place} does not exist"
        elif anchor and anchor not in anchors(place):
            yield f"{place} has no heading #{anchor}"
    yield from filter(None, map(problem, _OWN_MODULE.findall(source)))
    yield from (each for each in _PROPOSAL.findall(source) if not _WELL_FORMED.fullmatch(each))
    yield from (each for each in _KAFKA.findall(source) if not _FULL_PATH.fullmatch(each.rstrip(".")))
    yield from (
        f"{each}: name the class by its full path"
        for each in _CAMEL.findall(_ASIDE.sub("", source))
        if each not in NO_CLASSES
    )
    yield from (f"{each} is not in this repository" for each in _ABSENT.findall(source))


def test_what_a_source_cites_exists_and_is_named_in_full() -> None:
    found = sources()
    assert len(found) > 200
    assert [(path, fault) for path, text in found for fault in faults(text)] == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("docs/gone.md.", "docs/gone.md does not exist"),
        ("docs/design.md#a-logout", "docs/design.md has no heading #a-logout"),
        ("docs/decisions/0009 (no oracle)", "docs/decisions/0009 does not exist"),
        ("kafka_dt.tokens.coin.", "kafka_dt.tokens.coin does not exist"),
        ("KIP 48", "KIP 48"),
        ("RFC5802 section 3", "RFC5802"),
        ("Kafka's SaslServerAuthenticator", "SaslServerAuthenticator: name the class by its full path"),
        ('DESIGN.md, "gateway"', "DESIGN is not in this repository"),
    ],
)
def test_a_citation_of_nothing_is_found(source: str, fault: str) -> None:
    assert list(faults(source)) == [fault]


def test_a_citation_of_something_is_accepted() -> None:
    assert not list(
        faults(
            "KIP-48, RFC 5802, 3; kafka.server.KafkaApis (handleCreate); docs/design.md#a-login; "
            'org.apache.kafka.common.config.SaslConfigs; kafka_dt.tokens.token; "Token Details"; kafka_dt/app.py.'
        )
    )


def test_files_that_docstrings_name_exist_beside_them_below_them_or_at_the_path() -> None:
    missing = [
        (str(path.relative_to(ROOT)), name)
        for path, docstring in docstrings()
        for name in _FILE.findall(docstring)
        if not ((ROOT / name).exists() or any(each.match(f"*/{name}") for each in path.parent.rglob("*.py")))
    ]
    assert missing == []


@pytest.mark.parametrize("package", ["kafka_dt", "protocol/kafka_dt_protocol"])
def test_each_folder_of_several_files_says_which_one_to_read_first(package: str) -> None:
    folders = {path.parent: path.read_text(encoding="utf-8") for path in (ROOT / package).rglob("__init__.py")}
    silent = [
        str(folder.relative_to(ROOT))
        for folder, text in folders.items()
        if len(list(folder.glob("*.py"))) > 2
        and not re.search(r"\b[Rr]ead\b.*?\bfirst\b", ast.get_docstring(ast.parse(text)) or "", re.DOTALL)
    ]
    assert silent == []


def test_decisions_that_code_and_pages_name_exist() -> None:
    places = [path for folder in FOLDERS for kind in ("*.py", "*.md") for path in (ROOT / folder).rglob(kind)]
    numbers = {number for path in places for number in _DECISION.findall(path.read_text(encoding="utf-8"))}
    assert len(numbers) > 5
    assert numbers <= {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")}


@pytest.mark.parametrize("page", documents())
def test_links_lead_to_files_and_headings(page: str) -> None:
    folder = (ROOT / page).parent
    wrong = []
    for target, anchor in _LINK.findall(_FENCE.sub("", read(page))):
        place = (folder / target).resolve() if target else ROOT / page
        if not place.exists() or (anchor and anchor not in anchors(str(place.relative_to(ROOT)))):
            wrong.append(f"{target}#{anchor}")
    assert wrong == []
