"""The report as one HTML file that needs nothing else: no network, no server, no other file.

Read `render.py` first: it makes the page of a template (`report.html.j2`, `report.css`, `report.js`) and of the plots
of `charts.py`. plotly's own script is part of the file, 5 MB of it.

Names in a report come from events, and clients choose some of them. Text is escaped by the template engine, and
characters that do not print are shown as escapes; a policy in the page (CSP) lets only its own scripts run and
nothing be loaded.
"""

from kafka_dt.pipeline.report.page.render import html

__all__ = ["html"]
