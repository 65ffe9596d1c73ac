"""The numbers of a node as Prometheus reads them.

    exposition = Exposition(memory, health, started_s=time.time(), certificate_s=lambda: None)
    text = exposition.render()

Counters and histograms are the sums of all workers that there were. Gauges are those of the workers that live: summed,
the largest or smallest of them, or one for each worker, as declared.

Source: prometheus_client, "Custom Collectors"; Prometheus, "Exposition formats".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from kafka_dt.metrics import Counts, Gauges, MetricsMemory, WorkerPhase
from kafka_dt.metrics.declaration import Across, Kind, Metric, metrics_of
from kafka_dt.metrics.node import NODE_METRICS
from kafka_dt.monitoring.health import State

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

    from kafka_dt.monitoring.health import Health

WORKER: Final = "worker"
"""The label of a gauge that each worker has."""
_LINK: Final = re.compile(r"\[([^]]+)\]\([^)]*\)")
_FAMILIES: Final = {Kind.COUNTER: CounterMetricFamily, Kind.HISTOGRAM: HistogramMetricFamily}
_JOINED: Final[Mapping[Across, Callable[[Iterable[float]], float]]] = {
    Across.SUM: sum,
    Across.MAX: max,
    Across.MIN: min,
}


class Exposition:
    """Renders the numbers of a node.

    Args:
        memory: of the node.
        health: of the node.
        started_s: when the node started, in seconds since 1970.
        certificate_s: says when the endpoint's own certificate ends, in seconds since 1970; None without one.
    """

    def __init__(
        self, memory: MetricsMemory, health: Health, *, started_s: float, certificate_s: Callable[[], float | None]
    ) -> None:
        self._memory = memory
        self._health = health
        self._started_s = started_s
        self._certificate_s = certificate_s
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def render(self) -> bytes:
        """Return the numbers in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Family]:
        """Give every metric of the node: this is what a registry asks of a collector."""
        totals = self._memory.totals()
        first = 0
        for metric in metrics_of(Counts).values():
            yield _counted(metric, totals[first : first + metric.cells])
            first += metric.cells
        living = dict(self._health.living())
        for name, metric in metrics_of(Gauges).items():
            family = _measured(metric, {number: getattr(gauges, name) for number, gauges in living.items()})
            if family.samples:
                yield family
        yield from self._of_node()

    def _of_node(self) -> Iterator[Family]:
        memory, report = self._memory, self._health.report()
        phases = [memory.phase(number) for number in range(memory.workers)]
        values: dict[str, Mapping[tuple[str, ...], float]] = {
            "workers": {
                ("configured",): memory.workers,
                ("ready",): phases.count(WorkerPhase.READY),
            },
            "state": {(state,): state is report.state for state in State},
            "build": {(version("kafka-dt"),): 1},
            "start": {(): self._started_s},
        }
        if (end_s := self._certificate_s()) is not None:
            values["certificate"] = {(): end_s}
        for name, series in values.items():
            family = _gauge(NODE_METRICS[name])
            for labels, value in series.items():
                family.add_metric(labels, value)
            yield family


def _counted(metric: Metric, cells: Sequence[float]) -> CounterMetricFamily | HistogramMetricFamily:
    """Make the family of a counter or a histogram, of its part of the sums."""
    family: Any = _FAMILIES[metric.kind](metric.name, _help(metric), labels=tuple(metric.labels))
    for number, (_, labels) in enumerate(metric.series()):
        numbers = cells[number * metric.width : (number + 1) * metric.width]
        if metric.sparse and labels and not any(numbers):
            continue
        if metric.kind is Kind.HISTOGRAM:
            total, *events = numbers
            family.add_metric(labels, _cumulated(metric.buckets, events), total)
        else:
            family.add_metric(labels, *numbers)
    made: CounterMetricFamily | HistogramMetricFamily = family
    return made


def _cumulated(bounds: Sequence[float], events: Sequence[float]) -> list[tuple[str, float]]:
    """Return the events up to each bound, as Prometheus counts them."""
    buckets, so_far = [], 0.0
    for bound, count in zip((*map(str, bounds), "+Inf"), events, strict=True):
        so_far += count
        buckets.append((bound, so_far))
    return buckets


def _measured(metric: Metric, by_worker: Mapping[int, Any]) -> GaugeMetricFamily:
    """Make the family of a gauge of the values that the living workers have."""
    family = _gauge(metric)
    known = {number: _series(metric, value) for number, value in by_worker.items()}
    if metric.across is Across.EACH:
        for number, series in known.items():
            for labels, value in series.items():
                family.add_metric((*labels, str(number)), value)
        return family
    for labels in dict.fromkeys(labels for series in known.values() for labels in series):
        values = [series[labels] for series in known.values() if labels in series]
        family.add_metric(labels, _JOINED[metric.across](values))
    return family


def _series(metric: Metric, value: Any) -> Mapping[tuple[str, ...], float]:
    """Return the values of one worker by their labels; two labels say a fact, whose value is 1."""
    if value is None:
        return {}
    if not metric.labels:
        return {(): value}
    if len(metric.labels) == 1:
        return {(label,): each for label, each in value.items()}
    return dict.fromkeys(value.items(), 1)


def _help(metric: Metric) -> str:
    """Return the words of the manual about a metric, without links: a scraper has no pages beside it."""
    return _LINK.sub(r"\1", metric.doc)


def _gauge(metric: Metric) -> GaugeMetricFamily:
    labels = (*metric.labels, WORKER) if metric.across is Across.EACH else tuple(metric.labels)
    return GaugeMetricFamily(metric.name, _help(metric), labels=labels)
