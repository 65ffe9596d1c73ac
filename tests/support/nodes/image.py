"""The server's image without Docker: the commands of the Dockerfile, run in a folder.

    build_stages("wheels", "build", folder=folder)    # folder/opt/kafka-dt is what the image adds to its base

The absolute paths that the Dockerfile makes (/src, /opt, /wheels) are below the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.docs.documents import ROOT

_STAGE: Final = re.compile(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", re.MULTILINE | re.DOTALL)
_PATH: Final = re.compile(r"(?<![\w./$-])/(?=(?:src|opt|wheels)\b)")


def build_stages(*names: str, folder: Path) -> None:
    """Run the COPY and RUN lines of stages of the Dockerfile, one after the other."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    stages = dict(_STAGE.findall(text))
    for name in names:
        for line in stages[name].splitlines():
            instruction, _, rest = line.partition(" ")
            moved = _PATH.sub(f"{folder}/", rest)
            if instruction == "COPY":
                *sources, target = moved.split()
                for source in sources:
                    _copy(ROOT / source, Path(target), into=target.endswith("/"))
            elif instruction == "RUN":
                variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
                done = subprocess.run(
                    ["/bin/sh", "-c", moved], cwd=folder, env=variables, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{moved}\n{done.stdout}{done.stderr}"


def _copy(source: Path, target: Path, *, into: bool) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        target.mkdir(parents=True, exist_ok=True) if into else target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
