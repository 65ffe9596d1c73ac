"""The page about metrics: made of the tables of counters, gauges and facts.

Source: kafka_dt/metrics/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.metrics import Counts, Gauges
from kafka_dt.metrics.declaration import OTHER, Across, Kind, Metric, metrics_of
from kafka_dt.metrics.node import NODE_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEAD: Final = """\
# Metrics

A node with `kafka.dt.metrics.listener` serves these metrics at `/metrics`, in Prometheus' text format. [Monitor a
node](how-to/monitor.md) shows how to scrape them, with a dashboard and alerts.

One endpoint has the numbers of all workers. Counters and histograms are sums, also over workers that have ended: they
never go back while the node runs. Gauges are those of the workers that serve now; a gauge of a dead worker vanishes.

The values of labels are those below, or names of your configuration (listeners, ids of secret keys). Users, tokens,
clients and addresses are never labels: what is not named here counts as `other`.
"""
_SHOWN_VALUES: Final = 16
"""How many values of a label the page names; the names of all APIs are Kafka's."""


def page() -> str:
    """Return the page as Markdown."""
    counts = metrics_of(Counts).values()
    return "\n".join(
        [
            _HEAD,
            *_chapter("Counters", (each for each in counts if each.kind is Kind.COUNTER)),
            *_chapter("Histograms", (each for each in counts if each.kind is Kind.HISTOGRAM)),
            *_chapter("Gauges", metrics_of(Gauges).values()),
            *_chapter("The node", NODE_METRICS.values()),
        ]
    )


def _chapter(title: str, metrics: Iterable[Metric]) -> Iterator[str]:
    yield f"## {title}\n"
    for metric in metrics:
        yield f"(metric-{metric.name})=\n\n`{metric.name}`\n: {metric.doc}\n"
        if facts := "; ".join(_facts(metric)):
            yield f"  {facts}.\n"


def _facts(metric: Metric) -> Iterator[str]:
    for name, values in metric.labels.items():
        named = [value for value in dict.fromkeys(values.values()) if value != OTHER]
        if 0 < len(named) <= _SHOWN_VALUES:
            yield f"label `{name}`: {', '.join(f'`{value}`' for value in named)}"
        else:
            yield f"label `{name}`"
    if metric.buckets:
        yield f"buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)} seconds"
    if metric.kind is Kind.GAUGE and metric.across is Across.EACH:
        yield "label `worker`: one series for each worker"
