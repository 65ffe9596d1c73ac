"""`python -m docs.generators`: write every generated page of the manual."""

from docs.generators import DOCS, pages

for name, text in pages().items():
    (DOCS / name).write_text(text, encoding="utf-8")
