"""`recallscope slow` and `recallscope explain`: from a journal, a file of spans, a Tempo and a Jaeger."""

import json
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from recallscope.runtime.cli.main import main
from recallscope.runtime.events import Event
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.otlp_spans import SpanEncoder
from recallscope.telemetry.read.span_json import spans_in
from recallscope.telemetry.spans import SpanObserver
from recallscope.telemetry.testing.golden import AT, golden_turn, tool_free_turn, unlucky_turn

Says = Callable[..., tuple[int, str, str]]

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def anchor() -> Anchor:
    """Tie the golden turns to a minute ago."""
    return Anchor.stated(at=AT, wall=round(time.time()) - 60.0)


@pytest.fixture
def journal(tmp_path: Path, anchor: Anchor) -> Path:
    """Write a journal with three turns that ended a minute ago."""
    folder = tmp_path / "journal"
    folder.mkdir()
    encoder = Encoder(anchor)
    events = [*golden_turn(), *unlucky_turn(), *tool_free_turn(number=3, at=AT + 20)]
    (folder / "journal-1-1-0001.jsonl").write_bytes(b"".join(encoder(event) + b"\n" for event in events))
    return folder


@pytest.fixture
def says(tmp_path: Path, journal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Says:
    """Run `recallscope` in this process with that journal and return the exit code, stdout and stderr."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RECALLSCOPE_TELEMETRY_JOURNAL_DIR", str(journal))
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        written = capsys.readouterr()
        return code, written.out, written.err

    return go


def _verdict(out: str) -> str:
    return out[out.index("Held by") :]


def test_explain_draws_the_turn_and_says_the_verdict(says: Says) -> None:
    """The first line names the turn, the last ones are the verdict; nothing is on stderr."""
    code, out, err = says("explain", "s.1")

    assert (code, err) == (0, "")
    assert out.startswith("Turn s.1 · 3.00 s · end_turn · policy tiered · slow_with_tools, delivered both\n")
    assert [line for line in out.splitlines() if line != line.rstrip()] == []
    assert re.search(r"^Held by   The main model took 2\.40 s of 3\.00 s \(80 %\): send 2 of 2", out, re.MULTILINE)


def test_explain_last_is_the_turn_that_ended_last(says: Says) -> None:
    """`last` needs no id."""
    assert says("explain", "last")[1].startswith("Turn s.3 ·")


def test_explain_in_json_holds_turn_verdict_and_sentences(says: Says) -> None:
    """One object, with the times as numbers."""
    told = json.loads(says("explain", TRACE, "--json")[1])

    assert (told["schema"], told["turn"]["turn"], told["turn"]["seconds"]) == (1, "s.2", pytest.approx(2.1))
    assert told["verdict"]["biggest"] == "backoff"
    assert told["turn"]["recall"]["rollbacks"][0]["cause"] == "refused"
    assert told["sentences"]["setting"] == "none: no attempt reached the model, whatever recall did."


def test_a_turn_that_is_not_there_is_one_line_and_exit_1(says: Says) -> None:
    """The error says where was looked and what to do."""
    code, out, err = says("explain", "nobody")

    assert (code, out) == (1, "")
    assert err.startswith("recallscope: no turn 'nobody' was found in the journal in ")
    assert err.count("\n") == 1


def test_slow_lists_the_slowest_first(says: Says) -> None:
    """Each turn has its length, a bar of its phases, its parts, what memory did, and its start."""
    code, out, _ = says("slow", "--top", "2")
    ids = re.findall(r"s\.\d · \w+", out)

    assert (code, ids) == (0, ["s.1 · end_turn", "s.2 · failed"])
    assert "model 2.40 s (80 %), tool 500 ms (17 %)" in " ".join(out.split())
    assert f"trace {TRACE}" in out


def test_slow_in_json_says_where_the_time_went(says: Says) -> None:
    """Each turn has its phases in seconds, its longest send and tool, and its wait."""
    told = json.loads(says("slow", "--json")[1])

    assert [turn["turn"] for turn in told["turns"]] == ["s.1", "s.2", "s.3"]
    assert told["turns"][0]["longest_tool"] == {"tool": "read_file", "seconds": pytest.approx(0.5)}
    assert told["turns"][0]["phases"]["model"] == 2.4
    assert told["turns"][1]["waited_seconds"] == 0.2


@pytest.mark.parametrize("name", ["", "  "])
def test_a_turn_without_a_name_is_wrong_use(says: Says, name: str) -> None:
    """Exit code 2, and the sentence says what a name is."""
    code, out, err = says("explain", name)

    assert (code, out) == (2, "")
    assert "TURN_OR_TRACE is empty; give the id of a turn or of its trace, or last" in err


def test_broken_lines_of_a_journal_are_counted_and_told(says: Says, journal: Path) -> None:
    """In one line on stderr, each once; a torn last line, an empty one and a foreign object are none of them."""
    file = journal / "journal-1-1-0001.jsonl"
    first, *lines = file.read_bytes().splitlines(keepends=True)
    broken = [b"\x00\x00\x00\n", b'{"v": 1, "event": "TurnSta}\n', b"[1]\n"]
    harmless = [b"\n", b'{"v": 99, "event": "Later"}\n']
    file.write_bytes(b"".join([first, broken[0], *harmless, *lines, *broken[1:], b'{"v": 1, "ev']))
    told = f" broken lines in the journal in {journal} were left out, so turns may lack parts; a full disk, or another "

    said = {command: says(*command) for command in (("slow",), ("report", "--out", "-"), ("explain", "last"))}

    assert [code for code, _, _ in said.values()] == [0, 0, 0]
    assert said["slow",][2].startswith("recallscope: 2" + told)  # it reads no more than it must
    assert said["report", "--out", "-"][2].startswith("recallscope: 3" + told)
    assert said["explain", "last"][2].startswith("recallscope: 3" + told)


def test_broken_lines_among_spans_are_told(says: Says, tmp_path: Path, anchor: Anchor) -> None:
    """As of a journal."""
    spans = json.dumps(_otlp(golden_turn(), anchor))
    (tmp_path / "kept.jsonl").write_text(f'{spans}\ntorn"}}]\n{{"resourceSp')

    code, _, err = says("slow", "--from", "kept.jsonl")

    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("recallscope: 1 broken line in the spans in kept.jsonl was left out")


def test_slow_looks_back_no_further_than_asked(says: Says) -> None:
    """Turns that ended before are not there; nothing at all is exit code 1 and a hint."""
    code, out, err = says("slow", "--since", "30s")

    assert (code, out) == (1, "")
    assert "no turn of the last 30s was found in the journal in" in err


class _Structure:
    """What a page refers to, and its text."""

    def __init__(self, page: str) -> None:
        body = page[page.index("<body>") : page.index("</html>")]
        self.root = ET.fromstring(body)  # noqa: S314 - our own page: it must be well-formed
        self.text = " ".join("".join(self.root.itertext()).split())


def test_the_page_stands_alone_and_is_well_formed(says: Says, tmp_path: Path) -> None:
    """One file without script, link or address; the waterfall is SVG with a title on each bar; it has dark colours."""
    code, out, err = says("explain", "s.1", "--html", str(tmp_path / "turn.html"))
    page = (tmp_path / "turn.html").read_text("utf-8")
    structure = _Structure(page)

    assert (code, out) == (0, "")
    assert "turn.html: turn s.1 of the journal in" in err
    assert re.findall(r"https?:|src=|href=|<script|@import|url\(", page) == []
    assert ("prefers-color-scheme: dark" in page, "@media print" in page) == (True, True)
    assert len(structure.root.findall(".//svg/g/title")) == len(structure.root.findall(".//svg/g/rect")) + 6
    assert "The main model took 2.40 s of 3.00 s (80 %)" in structure.text


def test_what_a_record_says_cannot_break_out_of_page_or_terminal(says: Says, journal: Path, tmp_path: Path) -> None:
    """Markup in a tool's or a model's name is text on the page, control characters reach neither page nor terminal."""
    file = journal / "journal-1-1-0001.jsonl"
    evil = json.dumps("</text><script>alert(1)</script>\x1b[31m\x07").encode()
    file.write_bytes(file.read_bytes().replace(b'"read_file"', evil))
    _, out, _ = says("explain", "s.1")
    says("explain", "s.1", "--html", str(tmp_path / "turn.html"))
    page = (tmp_path / "turn.html").read_text("utf-8")

    assert ("<script" in page, "\x1b" in page + out, "\x07" in page + out) == (False, False, False)
    assert "tool </text><script>alert(1)</script>[31m" in _Structure(page).text


def test_a_page_that_cannot_be_written_is_one_line(says: Says, tmp_path: Path) -> None:
    """The error names the file."""
    code, _, err = says("explain", "s.1", "--html", str(tmp_path / "nowhere" / "turn.html"))

    assert code == 1
    assert f"turn.html cannot be written: the folder {tmp_path}/nowhere is not there; make it, or change --html" in err


# Back ends


def _otlp(events: Sequence[Event], anchor: Anchor) -> dict[str, Any]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observer = SpanObserver(provider.get_tracer("test"), anchor=anchor)
    for event in events:
        observer(event)
    message = ExportTraceServiceRequest()
    message.ParseFromString(SpanEncoder().request(exporter.get_finished_spans()))
    return json.loads(json.dumps(MessageToDict(message)))


@contextmanager
def _served(answer: Callable[[str, dict[str, str]], object]) -> Generator[tuple[str, list[str]]]:
    """Serve JSON on loopback; `answer` gets path and arguments, None is a 404. Yield the address and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked.append(parts.path)
            told = answer(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})
            self.send_response(404 if told is None else 200)
            self.end_headers()
            self.wfile.write(b"" if told is None else json.dumps(told).encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base names it
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def tempo(anchor: Anchor) -> Iterator[tuple[str, list[str]]]:
    """Serve a Tempo that holds the golden turn and the unlucky one."""
    documents = [_otlp(events, anchor) for events in (golden_turn(), unlucky_turn())]
    traces = {next(spans_in(document)).trace_id: document for document in documents}
    turns = dict(zip(traces, ("s.1", "s.2"), strict=True))
    seconds = dict(zip(traces, (3_000, 2_100), strict=True))

    def answer(path: str, arguments: dict[str, str]) -> object:
        if path == "/api/search":
            query = arguments.get("q", "")
            asked = re.search(r'turn\.id =~ "(.*?)"', query)
            named = asked[1].replace("\\\\", "\\") if asked else ".*"
            longer = re.search(r"duration > (\d+)ms", query)
            least = int(longer[1]) if longer else 0
            found = [
                {"traceID": trace.lstrip("0"), "durationMs": seconds[trace]}
                for trace in traces
                if re.fullmatch(named, turns[trace]) and seconds[trace] > least
            ]
            return {"traces": found}
        document = traces.get(path.rpartition("/")[2])
        return {"batches": document["resourceSpans"]} if path.startswith("/api/traces/") and document else None

    with _served(answer) as served:
        yield served


@pytest.mark.parametrize("name", ["s.1", "last", "s.2", TRACE])
def test_a_tempo_gives_the_verdict_of_the_journal(says: Says, tempo: tuple[str, list[str]], name: str) -> None:
    """Found by its id, its trace or as the last one, a turn in Tempo is explained as the journal explains it."""
    turn = {TRACE: "s.2", "last": "s.2"}.get(name, name)
    code, out, err = says("explain", name, "--from", tempo[0])

    assert (code, err) == (0, "")
    assert _verdict(out) == _verdict(says("explain", turn)[1])


def test_a_tempo_gives_the_slowest_turns(says: Says, tempo: tuple[str, list[str]]) -> None:
    """The search goes from long turns to all, and the turns come in order."""
    told = json.loads(says("slow", "--from", tempo[0], "--json")[1])

    assert [turn["turn"] for turn in told["turns"]] == ["s.1", "s.2"]
    assert [turn["longest_send"]["send"] for turn in told["turns"]] == [2, 1]


def test_a_jaeger_is_asked_for_the_service_and_the_turn(says: Says, anchor: Anchor) -> None:
    """A turn is looked for by its id as a tag, within a service; what Jaeger has is explained as the journal is."""
    document = _otlp(golden_turn(), anchor)
    wanted: list[tuple[str, str]] = []

    def answer(path: str, arguments: dict[str, str]) -> object:
        if path == "/api/services":
            return {"data": ["agents"]}
        wanted.append((arguments["service"], json.loads(arguments["tags"])["recallscope.turn.id"]))
        return {"data": [document]}

    with _served(answer) as (address, asked):
        code, out, err = says("explain", "s.1", "--from", address, "--service", "agents")

    assert (code, err, wanted, asked) == (0, "", [("agents", "s.1")], ["/api/services", "/api/traces"])
    assert _verdict(out) == _verdict(says("explain", "s.1")[1])


def test_an_address_where_nobody_answers_is_one_line(says: Says) -> None:
    """Whether it says what it is or not, the error names the address."""
    for address in ("http://127.0.0.1:9", "tempo+http://127.0.0.1:9", "jaeger+http://127.0.0.1:9"):
        code, _, err = says("slow", "--from", address)

        assert code == 1
        assert "recallscope: no answer from http://127.0.0.1:9: " in err


def test_a_login_in_an_address_is_never_shown(says: Says) -> None:
    """An address may hold a user and a password; what is said of it holds neither."""
    said = [says("slow", "--from", f"{kind}http://me:hidden@127.0.0.1:9") for kind in ("", "tempo+", "jaeger+")]
    said.append(says("slow", "--from", "ftp://me:hidden@127.0.0.1:9"))

    assert [code for code, _, _ in said] == [1, 1, 1, 1]
    assert [err for _, _, err in said if "hidden" in err] == []
    assert "no answer from http://127.0.0.1:9: nothing listens there (connection refused); check" in said[0][2]


def test_a_server_of_another_kind_is_told_apart(says: Says) -> None:
    """A server that is neither says so, and how to name the kind."""
    with _served(lambda _path, _arguments: {"hello": 1}) as (address, _):
        code, _, err = says("slow", "--from", address)

    assert code == 1
    assert f"{address} is neither a Tempo nor a Jaeger, as far as it answers" in err


@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("/api/v1/query", {"status": "success", "data": {}}, "is a Prometheus: it has figures and no turns; name the "),
        ("/api/health", {"database": "ok"}, "is a Grafana: it shows what others keep; name the address of a Tempo"),
    ],
)
def test_a_server_that_has_no_turns_is_named(says: Says, path: str, answer: object, told: str) -> None:
    """A Prometheus and a Grafana are known by their answers, and the sentence says what to give instead."""
    with _served(lambda asked, _arguments: answer if asked == path else None) as (address, _):
        code, _, err = says("slow", "--from", address)

    assert (code, err.startswith(f"recallscope: {address} {told}")) == (1, True), err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"# Notes\n\nNothing of turns.\n", "it is text, and no line of it is a JSON object"),
        (b"", "it is empty"),
        (b"\x1f\x8b\x08\x00rest", "it is compressed; unpack it first"),
        (b"\x7fELF\x00\x01", "it is no text"),
        (b'{"resourceMetrics": []}\n', "it holds the metrics or logs of a collector, and no spans"),
        (b'{"name": "a package",\n "version": 1}\n', "it is JSON of another kind"),
    ],
)
def test_a_file_that_holds_no_turns_is_told_by_what_it_is(
    says: Says, tmp_path: Path, content: bytes, told: str
) -> None:
    """Neither a journal nor spans: the sentence says what was found, and what to give instead."""
    (tmp_path / "found.jsonl").write_bytes(content)
    for command in (("slow",), ("explain", "last"), ("whatif",), ("report", "--out", "-")):
        code, out, err = says(*command, "--from", "found.jsonl")

        assert (code, out) == (1, "")
        assert err == (
            f"recallscope: found.jsonl is neither a journal nor a file of spans: {told}; name a journal's folder, a "
            "file of spans, or an address, which begins with http://\n"
        )


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("/dev/zero", "/dev/zero is neither a file nor a folder; save what it gives as a file and name that"),
        ("x" * 300, "cannot be read: File name too long; name a journal's folder"),
        ("~nobody-at-all/journal", "cannot be read: Could not determine home directory"),
        (
            "localhost:9090",
            "localhost:9090 is not there; name a journal's folder, a file of spans, or an address, which ",
        ),
    ],
)
def test_a_place_that_is_none_is_one_line(says: Says, place: str, told: str) -> None:
    """A device, a name that cannot be one, an address without its scheme."""
    code, _, err = says("slow", "--from", place)

    assert (code, told in err, err.count("\n")) == (1, True, 1), err


def test_spans_are_known_wherever_they_stand_in_a_file(says: Says, tmp_path: Path, anchor: Anchor) -> None:
    """Behind the metrics of the same collector, in a document of many lines, and in a folder beside other JSON."""
    spans = _otlp(golden_turn(), anchor)
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text('{"resourceMetrics": []}\n' + json.dumps(spans) + "\n")
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "trace.json").write_text(json.dumps({"data": [spans]}, indent=2))
    (folder / "package.json").write_text('{"name": "other"}')

    assert [says("explain", "s.1", "--from", str(place))[0] for place in (mixed, folder / "trace.json", folder)] == [
        0,
        0,
        0,
    ]


def test_a_place_that_is_not_there_is_one_line(says: Says, tmp_path: Path) -> None:
    """A missing file, and a folder without records, are told apart."""
    empty = tmp_path / "empty"
    empty.mkdir()

    assert "missing.jsonl is not there; name a journal's folder" in says("slow", "--from", "missing.jsonl")[2]
    assert "empty holds neither a journal" in says("slow", "--from", str(empty))[2]
