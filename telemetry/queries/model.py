"""Calls of models and of tools: how long, how many, how they ended, what they cost in tokens."""

from recallscope.runtime.events import Status
from recallscope.telemetry import names
from recallscope.telemetry.metric import prometheus_label
from recallscope.telemetry.queries.selector import WHOLE
from recallscope.telemetry.queries.shape import by_labels, increase, quantile, rate, series

__all__ = [
    "cache_share",
    "call_quantile",
    "calls",
    "failed_calls",
    "failed_share",
    "failed_tools",
    "first_chunk_quantile",
    "input_tokens",
    "output_tokens",
    "tool_calls",
    "tool_quantile",
]

_PURPOSE = prometheus_label(names.PURPOSE)
_FAILED = f'{prometheus_label(names.STATUS)}="{Status.FAILED}"'


def call_quantile(share: float, selector: str, window: str, *by: str) -> str:
    """Give a quantile of the duration of model calls, attempts included, in seconds."""
    return quantile(share, names.INFERENCE_DURATION, selector, window, *by)


def first_chunk_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the time to the first chunk of a streamed call by model, in seconds."""
    return quantile(share, names.INFERENCE_FIRST_CHUNK, selector, window, names.REQUEST_MODEL)


def calls(selector: str, window: str) -> str:
    """Give the model calls a minute by purpose and by how they ended."""
    return f"60 * {rate(_count(selector), window, names.PURPOSE, names.STATUS)}"


def failed_calls(selector: str, window: str) -> str:
    """Give the failed model calls a minute by purpose and error."""
    return f"60 * {rate(_count(f'{selector}, {_FAILED}'), window, names.PURPOSE, names.ERROR_TYPE)}"


def failed_share(selector: str, window: str) -> str:
    """Give the share of model calls that failed, by purpose; 0 where none did."""
    everything = increase(_count(selector), window, names.PURPOSE)
    failed = increase(_count(f"{selector}, {_FAILED}"), window, names.PURPOSE)
    return f"({failed} or 0 * {everything}) / {everything}"


def input_tokens(selector: str, window: str) -> str:
    """Give the input tokens a minute by purpose, cached ones included."""
    return f"60 * {rate(series(names.INFERENCE_INPUT_TOKENS, selector), window, names.PURPOSE)}"


def output_tokens(selector: str, window: str) -> str:
    """Give the output tokens a minute by purpose."""
    return f"60 * {rate(series(names.INFERENCE_OUTPUT_TOKENS, selector), window, names.PURPOSE)}"


def cache_share(selector: str, window: str) -> str:
    """Give the share of input tokens that the provider had in its cache, by purpose."""
    cached = rate(series(names.INFERENCE_CACHE_READ_TOKENS, selector), window, names.PURPOSE)
    return f"{cached} / {rate(series(names.INFERENCE_INPUT_TOKENS, selector), window, names.PURPOSE)}"


def tool_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the duration of ten tools, the slowest over the whole time range, in seconds."""
    shown = quantile(share, names.EXECUTE_TOOL_DURATION, selector, window, names.TOOL_NAME)
    buckets = series(names.EXECUTE_TOOL_DURATION, selector, "_bucket")
    over_all = f"histogram_quantile({share:g}, {_at_the_end(buckets, names.TOOL_NAME, 'le')})"
    return _ten(shown, over_all)


def tool_calls(selector: str, window: str) -> str:
    """Give the tool calls a minute of ten tools, the busiest over the whole time range."""
    counts = series(names.EXECUTE_TOOL_DURATION, selector, "_count")
    return _ten(f"60 * {rate(counts, window, names.TOOL_NAME)}", _at_the_end(counts, names.TOOL_NAME))


def failed_tools(selector: str, window: str) -> str:
    """Give the tool calls a minute that ended in failure or were cancelled, by tool and by which of the two."""
    ended = f'{selector}, {prometheus_label(names.STATUS)}!="{Status.OK}"'
    counts = series(names.EXECUTE_TOOL_DURATION, ended, "_count")
    return f"60 * {rate(counts, window, names.TOOL_NAME, names.STATUS)}"


def _ten(shown: str, rank: str) -> str:
    """Keep the same ten tools along the time range: `topk` alone would choose anew at every step."""
    return f"{shown} and on ({prometheus_label(names.TOOL_NAME)}) topk(10, {rank})"


def _at_the_end(what: str, *by: str) -> str:
    """Give the rate of a counter over the whole time range, the same at each step."""
    return f"sum{by_labels(*by)}(rate({what}[{WHOLE}] @ end()))"


def _count(selector: str) -> str:
    return series(names.INFERENCE_DURATION, selector, "_count")
