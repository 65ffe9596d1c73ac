"""The worked examples of CONTRIBUTING.md: what they change, read from the page and applied to a copy of the tree.

example = Example.of("A new SASL mechanism")
assert len(example.files) <= 4
example.apply(copy_of_tree(tmp_path))
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.support.docs.documents import ROOT, read

PAGE = "CONTRIBUTING.md"
COPIED = ("kafka_dt", "protocol", "tests", "docs", "benchmarks", "pyproject.toml", PAGE)
_BLOCK = re.compile(r"^```(python|diff)\n(?:# |--- )(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HUNKS = re.compile(r"^@@\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Edit:
    """One block of an example."""

    path: str
    """From the root of the tree."""
    text: str
    is_new: bool
    """Whether the text is a whole file; else it is a diff without line numbers."""

    def apply(self, root: Path) -> None:
        """Make the edit in a tree; an assertion fails where the tree is not as the page shows it."""
        file = root / self.path
        if self.is_new:
            assert not file.exists(), f"{self.path} exists"
            file.write_text(self.text, encoding="utf-8")
            return
        content = file.read_text(encoding="utf-8")
        for hunk in _HUNKS.split(self.text):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            assert content.count(before) == 1, f"{self.path} does not have these lines once:\n{before}"
            content = content.replace(before, after)
        file.write_text(content, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Example:
    """One worked example."""

    edits: tuple[Edit, ...]

    @classmethod
    def of(cls, heading: str) -> Example:
        """Read the example below a heading of the page."""
        section = re.split(r"^##", read(PAGE).partition(f"\n### {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        return cls(tuple(Edit(path, text, kind == "python") for kind, path, text in _BLOCK.findall(section)))

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the example touches, each once."""
        return tuple(dict.fromkeys(edit.path for edit in self.edits))

    def apply(self, root: Path) -> None:
        """Make all edits in a tree."""
        for edit in self.edits:
            edit.apply(root)

    def module(self, path: str) -> ModuleType:
        """Give a new file as a module of this process, without a file: for tests that pass its values on."""
        (edit,) = (edit for edit in self.edits if edit.path == path)
        name = path.removesuffix(".py").replace("/", ".")
        if name not in sys.modules:
            module = sys.modules[name] = ModuleType(name)
            exec(compile(edit.text, f"{PAGE}: {path}", "exec"), module.__dict__)  # noqa: S102 - code of this repository
        return sys.modules[name]


def copy_of_tree(folder: Path) -> Path:
    """Copy what the tests of an example need."""
    ignored = shutil.ignore_patterns("_build")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder
