"""One metric: its name, meaning and labels, and where its numbers are.

`counter(...)`, `histogram(...)` and `gauge(...)` declare a field of the tables in `counts.py` and `gauges.py`. The
memory, the endpoint, the tests and the manual all read the `Metric` that they leave in the field's metadata.

The values of a label are named in the declaration, or come from the configuration of the node. So no client can make a
series: a name, token id, client id or address is never a label, and a value that is not declared counts as `OTHER`.

Source: the conventions of Prometheus for names, units and labels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from itertools import product
from typing import Any, Final, TypeAlias

METRIC: Final = "metric"
"""The key of a field's metadata under which its `Metric` is."""
OTHER: Final = "other"
"""The value of a label for everything that the declaration does not name."""
PREFIX: Final = "kafka_dt_"

Cells: TypeAlias = "memoryview[float] | list[float]"
"""The numbers of one process: a memory of 8-byte floats, or a list."""


class Kind(Enum):
    """The types of Prometheus that are used."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


class Across(Enum):
    """How the gauges of the workers become those of the node."""

    SUM = "the sum of the workers"
    MAX = "the largest of the workers"
    MIN = "the smallest of the workers"
    EACH = "one series for each worker"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, declared once."""

    name: str
    kind: Kind
    doc: str
    labels: Mapping[str, Mapping[Hashable, str]] = field(default_factory=dict)
    """By name: the values of each label, by what the code calls them. None are named where they come from the
    configuration."""
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram, without the last one, which is infinite."""
    across: Across = Across.SUM
    sparse: bool = False
    """Whether a series appears with its first event, and not as 0 before: for labels with many values."""

    @property
    def cells(self) -> int:
        """How many numbers it takes."""
        return self.width * len(list(self.series()))

    @property
    def width(self) -> int:
        """How many numbers one series takes: a histogram's sum, and the events of each bucket."""
        return 2 + len(self.buckets) if self.kind is Kind.HISTOGRAM else 1

    def series(self) -> Iterator[tuple[tuple[Hashable, ...], tuple[str, ...]]]:
        """Walk the series: what the code calls the values of the labels, and the values."""
        for pairs in product(*(values.items() for values in self.labels.values())):
            yield tuple(key for key, _ in pairs), tuple(value for _, value in pairs)


class Counter:
    """A number that grows, for each combination of labels.

    Args:
        metric: what it counts.
        cells: where the numbers are.
        first: the place of its first one.
    """

    __slots__ = ("_at", "_cells", "_others")

    def __init__(self, metric: Metric, cells: Cells, first: int) -> None:
        self._cells = cells
        self._at = _places(metric, first)
        self._others = _Others(metric, self._at)

    def add(self, *labels: Hashable) -> None:
        """Count one event."""
        at = self._at.get(labels)
        self._cells[self._others.place(labels) if at is None else at] += 1

    def increase(self, amount: float, *labels: Hashable) -> None:
        """Count so much."""
        at = self._at.get(labels)
        self._cells[self._others.place(labels) if at is None else at] += amount


class Histogram:
    """How many events took how long, for each combination of labels; the arguments are those of `Counter`."""

    __slots__ = ("_at", "_buckets", "_cells", "_others")

    def __init__(self, metric: Metric, cells: Cells, first: int) -> None:
        self._cells = cells
        self._buckets = metric.buckets
        self._at = _places(metric, first)
        self._others = _Others(metric, self._at)

    def observe(self, value: float, *labels: Hashable) -> None:
        """Count an event, and how much it took."""
        at = self._at.get(labels)
        if at is None:
            at = self._others.place(labels)
        cells = self._cells
        cells[at] += value
        cells[at + 1 + bisect_left(self._buckets, value)] += 1


class _Others:
    """Finds the place of labels of which some are not declared."""

    __slots__ = ("_at", "_labels")

    def __init__(self, metric: Metric, at: Mapping[tuple[Hashable, ...], int]) -> None:
        self._labels = tuple(metric.labels.values())
        self._at = at

    def place(self, labels: tuple[Hashable, ...]) -> int:
        return self._at[tuple(key if key in known else OTHER for key, known in zip(labels, self._labels, strict=True))]


def _places(metric: Metric, first: int) -> dict[tuple[Hashable, ...], int]:
    return {keys: first + number * metric.width for number, (keys, _) in enumerate(metric.series())}


def counter(name: str, doc: str, *, sparse: bool = False, **labels: Iterable[str] | Mapping[Any, str]) -> Any:
    """Declare a field of `Counts` that is a `Counter`; the name without prefix and `_total`."""
    return _declared(Metric(f"{PREFIX}{name}_total", Kind.COUNTER, doc, _known(labels), sparse=sparse))


def histogram(name: str, doc: str, buckets: tuple[float, ...], **labels: Iterable[str] | Mapping[Any, str]) -> Any:
    """Declare a field of `Counts` that is a `Histogram`; the name without prefix."""
    return _declared(Metric(f"{PREFIX}{name}", Kind.HISTOGRAM, doc, _known(labels), buckets, sparse=True))


def gauge(name: str, doc: str, across: Across, *labels: str) -> Any:
    """Declare a field of `Gauges`; the name without prefix, and the labels, whose values the configuration gives."""
    named: dict[str, Mapping[Hashable, str]] = {label: {} for label in labels}
    return _declared(Metric(PREFIX + name, Kind.GAUGE, doc, named, across=across))


def metrics_of(table: type) -> dict[str, Metric]:
    """Return the metrics that a table declares, by the names of its fields."""
    return {each.name: each.metadata[METRIC] for each in fields(table) if METRIC in each.metadata}


def _declared(metric: Metric) -> Any:
    return field(metadata={METRIC: metric})


def _known(labels: Mapping[str, Iterable[str] | Mapping[Any, str]]) -> dict[str, Mapping[Hashable, str]]:
    """Add OTHER to the values of each label."""
    return {
        name: {**(values if isinstance(values, Mapping) else {str(each): str(each) for each in values}), OTHER: OTHER}
        for name, values in labels.items()
    }
