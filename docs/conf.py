"""Sphinx: the manual is Markdown (MyST) in the furo theme; `make docs` builds it, warnings are errors."""

from importlib.metadata import version as installed_version

project = "kafka-dt"
author = "the kafka-dt developers"
project_copyright = "the kafka-dt developers"
version = release = installed_version("kafka-dt")

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "generators"]

html_theme = "furo"
html_title = f"kafka-dt {release}"
