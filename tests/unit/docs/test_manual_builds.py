"""The manual builds without a warning, and what others link to has its place in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from docutils.nodes import make_id  # type: ignore[import-untyped]

from docs.generators import DOCS
from kafka_dt.config.settings import options
from kafka_dt.metrics import Counts, Gauges
from kafka_dt.metrics.declaration import metrics_of
from kafka_dt.metrics.node import NODE_METRICS
from kafka_dt.server.errors import CODES
from tests.support.docs.documents import ROOT

ALERTS = yaml.safe_load((ROOT / "ops/prometheus/alerts.yml").read_text())["groups"][0]["rules"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the pages."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    done = subprocess.run(
        [*command, "--doctree-dir", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_each_page_is_listed_once(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    sidebar = page.partition('<div class="sidebar-tree">')[2].partition("</div>")[0]
    listed = re.findall(r'<li class="toctree-l1"><a class="reference internal" href="([^"]+)"', sidebar)
    assert {"security.html", "tutorial.html"} <= set(listed)
    assert sorted(listed) == sorted(set(listed)), "a page is listed twice"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("configuration", [f"option-{declared.key}" for _, declared in options()]),
        ("metrics", [f"metric-{metric.name}" for table in (Counts, Gauges) for metric in metrics_of(table).values()]),
        ("metrics", [f"metric-{metric.name}" for metric in NODE_METRICS.values()]),
        ("errors", [f"error-{code.name}" for code in CODES.values()]),
        ("how-to/alerts", [alert["alert"] for alert in ALERTS]),
    ],
    ids=["options", "metrics of workers", "metrics of the node", "errors", "alerts"],
)
def test_each_has_a_permanent_link(site: Path, page: str, names: list[str]) -> None:
    anchors = set(re.findall(r'\bid="([^"]+)"', (site / f"{page}.html").read_text(encoding="utf-8")))
    assert names
    assert [name for name in names if make_id(name) not in anchors] == []
