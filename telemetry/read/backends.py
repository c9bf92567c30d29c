"""Reads turns from a trace back end: a Tempo or a Jaeger, through the address under which its API stands."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from recallscope.telemetry import names
from recallscope.telemetry.read.address import Address
from recallscope.telemetry.read.fetch import NoAnswerError, RefusedError, fetch
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.lenient import entries, mapping, number, text
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.sources import LAST, ambiguous, not_found, slowest_of
from recallscope.telemetry.read.span_json import spans_in
from recallscope.telemetry.read.span_turns import turns_of

__all__ = ["JaegerTurns", "TempoTurns", "backend_at"]

LOOKBACK_SECONDS: Final = 7 * 86_400.0 - 60.0
"""How far back is searched unless it is said; Tempo refuses more than a week."""

MOST_TRACES: Final = 1_000
CANDIDATES: Final = 5
"""How many times as many traces are asked for as are wanted: a search gives recent ones, not the slowest."""

THRESHOLDS: Final = (10.24, 1.0, 0.0)
"""Durations (seconds) above which slow turns are searched, one after the other, until there are enough."""

TRACE_DIGITS: Final = 32


class TempoTurns:
    """The turns in the Tempo at `url`."""

    def __init__(self, url: str, *, now: Callable[[], float] = time.time) -> None:
        self._server = _address(url)
        self._now = now

    @property
    def where(self) -> str:
        """What is read, for people."""
        return f"the Tempo at {self._server.base}"

    @property
    def broken(self) -> int:
        """How many broken lines were left out: none, since a back end answers with whole traces."""
        return 0

    def turns(self, *, since: float | None = None) -> Iterator[RecordedTurn]:
        """Yield the turns of the last traces, 1,000 at most, that ended at `since` or later.

        Raises:
            ReadError: nobody answers, or it refuses.
        """
        for trace in self._search(_query(), since, MOST_TRACES):
            yield from _since(self._turns_of(trace), since)

    def slowest(self, *, top: int, since: float | None = None) -> list[RecordedTurn]:
        """Return the `top` slowest of the turns that a search for long ones gives, the slowest first.

        Raises:
            ReadError: nobody answers, or it refuses.
        """
        traces: dict[str, None] = {}
        for threshold in THRESHOLDS:
            query = _query(f"span:duration > {threshold * 1000:.0f}ms") if threshold else _query()
            found = self._search(query, since, min(CANDIDATES * top, MOST_TRACES))
            traces.update(dict.fromkeys(found[:top] if traces else found))
            if len(traces) >= top:
                break
        return slowest_of((turn for trace in traces for turn in _since(self._turns_of(trace), since)), top)

    def find(self, name: str) -> RecordedTurn:
        """Return the turn with this id, trace id, or begin of its id; `last`: the one that ended last.

        Raises:
            ReadError: there is none, there are several, nobody answers, or it refuses.
        """
        if name == LAST:
            recent = self._search(_query(), None, CANDIDATES)
            return _only(name, self.where, _newest(turn for trace in recent for turn in self._turns_of(trace)))
        turns = list(self._turns_of(name.lower())) if _is_trace(name) else []
        if not turns:
            begin = _escaped(name)
            traces = self._search(f'{{ span.{names.TURN_ID} =~ "{begin}.*" }}', None, CANDIDATES)
            turns = [turn for trace in traces for turn in self._turns_of(trace) if turn.turn.startswith(name)]
        return _only(name, self.where, turns)

    def _search(self, query: str, since: float | None, limit: int) -> list[str]:
        """Return the ids of the traces that match, the longest first."""
        now = self._now()
        start = now - LOOKBACK_SECONDS if since is None else since - LOOKBACK_SECONDS / 100
        arguments = {"q": query, "limit": str(limit), "start": f"{start:.0f}", "end": f"{now + 1:.0f}"}
        found = mapping(fetch(self._server, "/api/search", arguments))
        traces = [mapping(trace) for trace in entries(found.get("traces"))]
        traces.sort(key=lambda trace: number(trace.get("durationMs")) or 0.0, reverse=True)
        return [name.rjust(TRACE_DIGITS, "0") for trace in traces if (name := text(trace.get("traceID"))) is not None]

    def _turns_of(self, trace: str) -> Iterator[RecordedTurn]:
        yield from turns_of(spans_in(fetch(self._server, f"/api/traces/{trace}")))


class JaegerTurns:
    """The turns of `service` in the Jaeger at `url`."""

    def __init__(self, url: str, *, service: str = names.SCOPE, now: Callable[[], float] = time.time) -> None:
        self._server = _address(url)
        self._service = service
        self._now = now

    @property
    def where(self) -> str:
        """What is read, for people."""
        return f"the Jaeger at {self._server.base} (service {self._service})"

    @property
    def broken(self) -> int:
        """How many broken lines were left out: none, since a back end answers with whole traces."""
        return 0

    def turns(self, *, since: float | None = None) -> Iterator[RecordedTurn]:
        """Yield the turns of the last traces, 1,000 at most, that ended at `since` or later.

        Raises:
            ReadError: nobody answers, or it refuses.
        """
        yield from _since(self._search(since, MOST_TRACES), since)

    def slowest(self, *, top: int, since: float | None = None) -> list[RecordedTurn]:
        """Return the `top` slowest of the turns that a search for long ones gives, the slowest first.

        Raises:
            ReadError: nobody answers, or it refuses.
        """
        found: dict[str, RecordedTurn] = {}
        for threshold in THRESHOLDS:
            longer = {"minDuration": f"{threshold * 1000:.0f}ms"} if threshold else {}
            turns = _since(self._search(since, min(CANDIDATES * top, MOST_TRACES), **longer), since)
            found.update({f"{turn.trace_id} {turn.turn}": turn for turn in turns})
            if len(found) >= top:
                break
        return slowest_of(found.values(), top)

    def find(self, name: str) -> RecordedTurn:
        """Return the turn with this id or trace id; `last`: the one that ended last. Begins of ids are not searched.

        Raises:
            ReadError: there is none, there are several, nobody answers, or it refuses.
        """
        if name == LAST:
            return _only(name, self.where, _newest(self._search(None, CANDIDATES)))
        turns = list(self._of_trace(name.lower())) if _is_trace(name) else []
        if not turns:
            found = self._search(None, CANDIDATES, tags=json.dumps({names.TURN_ID: name}))
            turns = [turn for turn in found if turn.turn == name]
        return _only(name, self.where, turns)

    def _search(self, since: float | None, limit: int, **more: str) -> list[RecordedTurn]:
        now = self._now()
        start = now - LOOKBACK_SECONDS if since is None else since - LOOKBACK_SECONDS / 100
        tags = json.dumps({names.OPERATION_NAME: names.INVOKE_AGENT})
        arguments = {
            "service": self._service,
            "limit": str(limit),
            "start": f"{start * 1e6:.0f}",
            "end": f"{(now + 1) * 1e6:.0f}",
            "tags": tags,
            **more,
        }
        return list(turns_of(spans_in(fetch(self._server, "/api/traces", arguments))))

    def _of_trace(self, trace: str) -> Iterator[RecordedTurn]:
        yield from turns_of(spans_in(fetch(self._server, f"/api/traces/{trace}")))


def backend_at(url: str, *, service: str = names.SCOPE) -> TempoTurns | JaegerTurns:
    """Ask the server at `url` what it is; `tempo+http://…` and `jaeger+http://…` say it.

    Raises:
        ReadError: nobody answers, or it is neither a Tempo nor a Jaeger.
    """
    kind, plus, rest = url.partition("+")
    match kind if plus else "":
        case "tempo":
            return TempoTurns(rest)
        case "jaeger":
            return JaegerTurns(rest, service=service)
        case _:
            pass
    server = _address(url)
    if "data" in mapping(_asked(server, "/api/services")):
        return JaegerTurns(url, service=service)
    if "traces" in mapping(_asked(server, "/api/search")):
        return TempoTurns(url)
    raise ReadError(_stranger(server))


def _stranger(server: Address) -> str:
    """Say what a server is that is neither, and what to name instead."""
    instead = "name the address of a Tempo or a Jaeger with --from, a journal, or a file of spans"
    if "data" in mapping(_asked(server, "/api/v1/query?query=1")):
        return (
            f"{server.base} is a Prometheus: it has figures and no turns; {instead} "
            "(`recallscope compare --from-prometheus` draws its figures)"
        )
    if "database" in mapping(_asked(server, "/api/health")):
        return f"{server.base} is a Grafana: it shows what others keep; {instead}"
    return (
        f"{server.base} is neither a Tempo nor a Jaeger, as far as it answers; say which with tempo+{server.base} or "
        f"jaeger+{server.base}"
    )


def _address(url: str) -> Address:
    return Address.of(url, server="a Tempo or a Jaeger", example="http://localhost:3200")


def _asked(server: Address, path: str) -> object:
    """Return what is at `path`; None where the answer is of another kind of server."""
    try:
        return fetch(server, path)
    except (NoAnswerError, RefusedError):
        raise
    except ReadError:
        return None


def _query(condition: str = "") -> str:
    """Return the TraceQL for turns."""
    turn = f'span.{names.OPERATION_NAME} = "{names.INVOKE_AGENT}"'
    return f"{{ {turn} && {condition} }}" if condition else f"{{ {turn} }}"


def _escaped(name: str) -> str:
    """Return `name` as a regular expression within a TraceQL text."""
    plain = "".join(character if character.isalnum() or character in "-_" else f"\\{character}" for character in name)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _is_trace(name: str) -> bool:
    return len(name) == TRACE_DIGITS and all(digit in "0123456789abcdef" for digit in name.lower())


def _since(turns: Iterable[RecordedTurn], since: float | None) -> Iterator[RecordedTurn]:
    return (turn for turn in turns if since is None or turn.wall + turn.length >= since)


def _newest(turns: Iterable[RecordedTurn]) -> list[RecordedTurn]:
    newest = max(turns, key=lambda turn: turn.wall + turn.length, default=None)
    return [newest] if newest is not None else []


def _only(name: str, where: str, turns: list[RecordedTurn]) -> RecordedTurn:
    """Return the one turn; among turns of one id the last."""
    if not turns:
        raise not_found(name, where)
    exact = [turn for turn in turns if turn.turn == name]
    known = {turn.turn for turn in exact or turns}
    if len(known) > 1:
        raise ambiguous(name, known)
    return max(exact or turns, key=lambda turn: turn.wall)
