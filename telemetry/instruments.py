"""The counters and gauges in `names`, made so that one observation costs as little as it can.

A few counters go through the SDK with the context of a span, so that they carry exemplars. All others and the gauges
are plain tallies that are read when somebody collects: a turn costs them an addition. `histograms` has the rest.
"""

from collections.abc import Callable, Iterable, Mapping

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.util.types import AttributeValue

from recallscope.telemetry.metric import Metric

__all__ = [
    "ExemplarCounter",
    "Labels",
    "Tally",
    "observe_counter",
    "observe_gauge",
    "observe_up_down",
]

Labels = tuple[str | int, ...]
"""The values of a metric's labels, in the order of `Metric.labels`; an empty string leaves its label out."""

MAX_LABEL_SETS = 2_000


class _Attributes:
    """Attribute sets by their label values: each is built once."""

    def __init__(self, metric: Metric) -> None:
        self._names = metric.labels
        self._sets: dict[Labels, Mapping[str, AttributeValue]] = {}

    def of(self, values: Labels) -> Mapping[str, AttributeValue]:
        """Return the attributes for `values`; an empty string leaves its label out."""
        attributes = self._sets.get(values)
        if attributes is None:
            attributes = {name: value for name, value in zip(self._names, values, strict=True) if value != ""}
            if len(self._sets) < MAX_LABEL_SETS:
                self._sets[values] = attributes
        return attributes


class ExemplarCounter:
    """A counter whose increments carry the span that they belong to: for what one wants to see a trace of."""

    def __init__(self, meter: Meter, metric: Metric) -> None:
        self._attributes = _Attributes(metric)
        self._add = meter.create_counter(metric.name, unit=metric.unit, description=metric.description).add

    def add(self, number: int, values: Labels, context: Context) -> None:
        """Add `number` under label `values` with the span in `context`."""
        self._add(number, self._attributes.of(values), context)


class Tally:
    """A counter without exemplars: a number per label set, read at collection."""

    def __init__(self, meter: Meter, metric: Metric) -> None:
        self._attributes = _Attributes(metric)
        self._numbers: dict[Labels, int] = {}
        meter.create_observable_counter(
            metric.name, callbacks=[self._observe], unit=metric.unit, description=metric.description
        )

    def add(self, number: int, values: Labels) -> None:
        """Add `number` under label `values`; what comes after 2,000 label sets is not counted."""
        numbers = self._numbers
        if values in numbers or len(numbers) < MAX_LABEL_SETS:
            numbers[values] = numbers.get(values, 0) + number

    def _observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(number, self._attributes.of(values)) for values, number in self._numbers.copy().items()]


def observe_up_down(meter: Meter, metric: Metric, read: Callable[[], int]) -> None:
    """Let the up-down counter `metric` be what `read` returns at collection."""
    meter.create_observable_up_down_counter(
        metric.name, callbacks=[lambda _: [Observation(read())]], unit=metric.unit, description=metric.description
    )


def observe_gauge(meter: Meter, metric: Metric, read: Callable[[], Mapping[Labels, float]]) -> None:
    """Let the gauge `metric` be what `read` returns at collection, by label values."""
    attributes = _Attributes(metric)

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, attributes.of(labels)) for labels, value in read().items()]

    meter.create_observable_gauge(metric.name, callbacks=[observe], unit=metric.unit, description=metric.description)


def observe_counter(meter: Meter, metric: Metric, read: Callable[[], Mapping[Labels, int]]) -> None:
    """Let the counter `metric` be what `read` returns at collection, by label values."""
    attributes = _Attributes(metric)

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, attributes.of(labels)) for labels, value in read().items()]

    meter.create_observable_counter(metric.name, callbacks=[observe], unit=metric.unit, description=metric.description)
