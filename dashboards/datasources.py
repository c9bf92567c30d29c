"""Grafana's data sources, for its provisioning: a Prometheus, and beside it a Tempo, or a Jaeger, for the traces."""

import json
from collections.abc import Iterator
from typing import Final

from recallscope.dashboards import config
from recallscope.telemetry.queries import turns
from recallscope.telemetry.queries.selector import pushed

__all__ = ["data_sources"]

_PROMETHEUS: Final = """apiVersion: 1

datasources:
  - name: Prometheus
    uid: recallscope-prometheus
    type: prometheus
    access: proxy
    url: ${{PROMETHEUS_URL}}
    isDefault: true
    jsonData:
      httpMethod: POST             # expressions are longer than some servers take in an address
      timeInterval: {scrape}            # the scrape and push interval; rates are taken over four of them
      exemplarTraceIdDestinations: # a dot on a latency panel leads to its trace
        - name: trace_id
          datasourceUid: recallscope-{store}
          urlDisplayLabel: Open the trace
"""

_TEMPO: Final = """# Data sources for a Grafana beside a Prometheus and a Tempo. Addresses: PROMETHEUS_URL, TEMPO_URL.
{prometheus}
  - name: Tempo
    uid: recallscope-tempo
    type: tempo
    access: proxy
    url: ${{TEMPO_URL}}
    jsonData:
      nodeGraph:
        enabled: true
      tracesToMetrics:             # from a span to the figures of its process, as the collector names it
        datasourceUid: recallscope-prometheus
        spanStartTimeShift: -30m
        spanEndTimeShift: 30m
        tags:
          - key: service.instance.id
            value: instance
        queries:
{queries}
"""

_JAEGER: Final = """# Data sources for a Grafana beside a Prometheus and a Jaeger, the light alternative to Tempo.
# Addresses: PROMETHEUS_URL, JAEGER_URL. Exemplars lead to Jaeger; the tables of traces need TraceQL, which it lacks.
{prometheus}
  - name: Jaeger
    uid: recallscope-jaeger
    type: jaeger
    access: proxy
    url: ${{JAEGER_URL}}
    jsonData:
      nodeGraph:
        enabled: true
"""


def data_sources() -> Iterator[tuple[str, str]]:
    """Yield the two files, of which a Grafana gets one."""
    texts = {"tempo": _TEMPO, "jaeger": _JAEGER}
    for store, text in texts.items():
        made = text.format(prometheus=_PROMETHEUS.format(store=store, scrape=config.SCRAPE), queries=_from_a_span())
        yield f"provisioning/{store}/datasources.yaml", made


def _from_a_span() -> str:
    """List what is asked about a span's process; `$__tags` are its matchers, and a `$` is doubled for Grafana."""
    tags, window = f"{pushed()}, $__tags", "$__rate_interval"
    asked = {
        "Turn duration p95": turns.duration_quantile(0.95, tags, window),
        "Event loop lag p99": turns.loop_lag_quantile(0.99, tags, window),
        "Oldest running turn": turns.oldest_age(tags),
    }
    lines = [
        f"          - name: {name}\n            query: {json.dumps(query.replace('$', '$$'))}"
        for name, query in asked.items()
    ]
    return "\n".join(lines)
