"""The shipped files in a real collector: they are valid, and what goes through is guarded, masked and sampled."""

import json
import random
import re
import secrets
import time
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml
from binomial import binomial_interval
from foreign import Attributes, new_trace, pairs, send, span, value
from programs import COLLECTOR_FILE, FLEET_FILE, Collector, run_collector, validate, wait_until
from relay import Seen, kept_spans, traces_of

from recallscope.telemetry import names
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_turn

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

KEY = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
MAIL = "ada.lovelace@example.org"
BEARER = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
SECRETS = (KEY, MAIL, BEARER, "hunter2hunter2", "s3cr3tpass")
PLANTED = {
    "bearer": ("sent Bearer abc123def456 to it", "sent **** to it"),
    "key": (f"no such key: {KEY}", "no such key: ****"),
    "github": ("push as ghp_16C7e42F292c6912E7710c838347Ae178B4a", "push as ****"),
    "github_fine": ("push as github_pat_11ABCDEFG0123456789_abc", "push as ****"),
    "gitlab": ("push as glpat-ABCdef123456", "push as ****"),
    "slack": ("post as xoxb-123456789012-abcdef", "post as ****"),
    "aws": ("list as AKIAIOSFODNN7EXAMPLE", "list as ****"),
    "jwt": (f"signed {BEARER}", "signed ****"),
    "private_key": ("read -----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n", "read ****"),
    "password": ("login password=hunter2hunter2 failed", "login **** failed"),
    "login": ("open postgres://ada:s3cr3tpass@db/notes", "open postgres****db/notes"),
    "mail": (f"GET as {MAIL}", "GET as ****"),
}
"""Texts with one credential of each kind, and what is to be left of them."""

QUICK = {
    "OTELCOL_DECISION_WAIT": "1s",
    "OTELCOL_DECISION_WAIT_AFTER_ROOT": "100ms",
    "OTELCOL_TRACES_ENDPOINT": "127.0.0.1:9",
    "OTELCOL_METRICS_ENDPOINT": "http://127.0.0.1:9/api/v1/write",
}
"""Decisions within a second, and nobody behind the collector: what it kept is read from its file."""


def _kept(collector: Collector, trace: str) -> tuple[Seen, ...]:
    found = traces_of(kept_spans(collector.kept)).get(trace)
    return found.spans if found is not None else ()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Generator[Collector]:
    """Run a collector with the shipped file that keeps no trace but those that it must."""
    with run_collector(tmp_path_factory.mktemp("collector"), **QUICK, OTELCOL_BASELINE_PERCENT="0") as running:
        yield running


@pytest.mark.parametrize("file", [COLLECTOR_FILE, FLEET_FILE], ids=lambda path: path.name)
def test_the_shipped_files_are_valid(file: Path) -> None:
    """The collector takes both files as they are, with no variable set, and calls no name in them old."""
    done = validate(file)

    assert (done.returncode, done.stdout) == (0, "")
    assert "deprecated" not in done.stderr


def test_a_wrong_file_is_not(tmp_path: Path) -> None:
    """What validates the files refuses a setting that does not exist."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        COLLECTOR_FILE.read_text(encoding="utf-8").replace("num_traces:", "number_of_traces:"), encoding="utf-8"
    )

    done = validate(wrong)

    assert done.returncode == 1
    assert "number_of_traces" in done.stderr


def test_it_starts_without_a_complaint(collector: Collector) -> None:
    """No component calls its name or a setting deprecated, and none warns."""
    complaints = [line for line in collector.log.splitlines() if '"level":"warn"' in line and "deprecat" in line]

    assert complaints == []


def test_credentials_and_mail_addresses_are_masked(collector: Collector) -> None:
    """A planted key, a bearer token, passwords and a mail address are in nothing that leaves the collector."""
    trace = new_trace()
    planted = span(
        trace,
        f"GET as {MAIL}",
        {
            names.TURN_KEEP: True,
            "note": f"key {KEY} of {MAIL}",
            "http.request.header.authorization": f"Bearer {BEARER}",
            "url.full": "postgres://ada:s3cr3tpass@db/notes",
            "line": "password=hunter2hunter2",
            names.USAGE_INPUT: 1200,
            names.MEMORY_RECORD_ID: "user/how-to-task-refactor-everything",
        },
        events=[
            {
                "name": "exception",
                "timeUnixNano": str(time.time_ns()),
                "attributes": pairs({"exception.message": f"{KEY} is no key"}),
            }
        ],
        status={"code": 2, "message": f"401: {KEY} of {MAIL}"},
    )

    planted["attributes"] += [
        {"key": "args", "value": {"arrayValue": {"values": [value("--key"), value(KEY)]}}},
        {"key": "user", "value": {"kvlistValue": {"values": [{"key": "mail", "value": value(MAIL)}]}}},
        {"key": "reasons", "value": {"arrayValue": {"values": [value("stop")]}}},
    ]
    send(collector, "traces", [planted], {"owner": MAIL})
    wait_until(lambda: bool(_kept(collector, trace)), "the trace is kept")

    text, (kept,) = collector.kept.read_text(encoding="utf-8"), _kept(collector, trace)
    assert [secret for secret in SECRETS if secret in text] == []
    assert kept.attributes["note"] == "key **** of ****"
    assert kept.attributes["reasons"] == ("stop",)
    assert kept.attributes["url.full"] == "postgres****db/notes"
    assert kept.attributes["http.request.header.authorization"] == "****"
    assert (kept.name, kept.attributes[names.USAGE_INPUT]) == ("GET as ****", 1200)
    assert kept.attributes[names.MEMORY_RECORD_ID] == "user/how-to-task-refactor-everything"


@pytest.mark.parametrize(("text", "masked"), PLANTED.values(), ids=PLANTED)
def test_a_credential_is_masked_wherever_it_stands(collector: Collector, text: str, masked: str) -> None:
    """Of each kind: in an attribute, a span's name, the message of its status and the name of an event alike."""
    trace = new_trace()
    event = {"name": text, "timeUnixNano": str(time.time_ns()), "attributes": pairs({"note": text})}
    send(collector, "traces", [span(trace, text, {"note": text}, events=[event], status={"code": 2, "message": text})])
    wait_until(lambda: bool(_kept(collector, trace)), "the trace is kept")

    (kept,) = _kept(collector, trace)
    assert (kept.name, kept.message, kept.events, kept.attributes) == (masked, masked, (masked,), {"note": masked})
    assert json.dumps(text)[1:-1] not in collector.kept.read_text(encoding="utf-8")


def test_every_kind_of_credential_is_planted() -> None:
    """Each pattern of the shipped file is that of a kind which the test above plants, and none of them is harmless."""
    redaction = yaml.safe_load(COLLECTOR_FILE.read_text(encoding="utf-8"))["processors"]["redaction"]
    patterns = [re.compile(pattern) for pattern in redaction["blocked_values"]]
    texts = [text for text, _ in PLANTED.values()]

    assert [rule.pattern for rule in patterns if not any(map(rule.search, texts))] == []
    assert [text for text in texts if not any(rule.search(text) for rule in patterns)] == []


def test_what_has_no_name_and_no_message_gets_none(collector: Collector) -> None:
    """A span without name, message and events leaves as it came, and an attribute of the guard's own name is none."""
    trace = new_trace()
    planted: Attributes = {names.TURN_KEEP: True, "otelcol.guard.name": "planted", "otelcol.guard.status": "planted"}
    send(collector, "traces", [span(trace, "", planted)])
    wait_until(lambda: bool(_kept(collector, trace)), "the trace is kept")

    (kept,) = _kept(collector, trace)
    assert (kept.name, kept.message, kept.events, kept.attributes) == ("", "", (), {names.TURN_KEEP: True})


def test_an_overgrown_span_keeps_what_matters(collector: Collector) -> None:
    """Of 200 attributes and a value of 100,000 characters the essentials stay, and the rest is cut."""
    trace = new_trace()
    chaff: Attributes = {f"chaff.{number}": "x" * 50 for number in range(200)}
    ours: Attributes = {names.TURN_KEEP: True, names.TURN_OUTCOME: "failed", names.RECALL_REASON: "abort"}

    send(collector, "traces", [span(trace, "wide", {"big": "y" * 100_000, **chaff, **ours})])
    wait_until(lambda: bool(_kept(collector, trace)), "the trace is kept")

    (kept,) = _kept(collector, trace)
    assert len(kept.attributes) == 96
    assert {name: kept.attributes.get(name) for name in ours} == ours
    assert max(len(value) for value in kept.attributes.values() if isinstance(value, str)) <= 4096


def test_a_failed_span_keeps_its_trace(collector: Collector) -> None:
    """One span with status ERROR keeps the whole trace; a trace that merely was, or was cancelled, is not kept."""
    failed, usual, cancelled = new_trace(), new_trace(), new_trace()
    spans = [
        span(failed, "search_memory", status={"code": 2}),
        *(span(failed, f"child {number}") for number in range(3)),
        span(usual, "invoke_agent a", {names.TURN_OUTCOME: "end_turn"}),
        span(cancelled, "invoke_agent a", {names.TURN_OUTCOME: "cancelled"}),
    ]
    send(collector, "traces", spans)
    last = new_trace()
    send(collector, "traces", [span(last, "last", {names.TURN_KEEP: True})])
    wait_until(lambda: bool(_kept(collector, last)), "the last trace is kept")

    assert len(_kept(collector, failed)) == 4
    assert (_kept(collector, usual), _kept(collector, cancelled)) == ((), ())


def test_the_baseline_is_the_share_that_was_asked_for(tmp_path: Path) -> None:
    """Of 5,000 unremarkable traces as many are kept as a binomial 99 % interval of the baseline allows: 18.5 to 21.5 %.

    The choice follows from the trace id alone, and the ids are the same in every run: what passes once always passes,
    until the sampler chooses otherwise.
    """
    chance = random.Random("baseline")
    sent = [f"{chance.getrandbits(128):032x}" for _ in range(5_000)]
    with run_collector(tmp_path, **QUICK, OTELCOL_BASELINE_PERCENT="20") as running:
        for begin in range(0, len(sent), 500):
            send(running, "traces", [span(trace, "invoke_agent a") for trace in sent[begin : begin + 500]])
        decided = "otelcol_processor_tail_sampling_global_count_traces_sampled_total"
        wait_until(lambda: running.own(decided) == len(sent), "all traces are decided")
        said = running.own(decided, 'sampled="true"')
        wait_until(lambda: len(kept_spans(running.kept)) == said, "the file holds what was kept")

    low, high = binomial_interval(len(sent), 0.2)
    assert low <= said <= high
    assert (low, high) == (928, 1073)


def test_a_marker_that_comes_first_keeps_what_comes_late(collector: Collector) -> None:
    """A turn longer than the decision is kept for its marker alone, and spans after the decision follow it."""
    trace = new_trace()
    parent = secrets.token_hex(8)
    send(collector, "traces", [span(trace, names.TURN_MARK, {names.TURN_KEEP: True}, parentSpanId=parent)])
    wait_until(lambda: len(_kept(collector, trace)) == 1, "the marker is kept")

    send(collector, "traces", [span(trace, "invoke_agent a", spanId=parent)])

    wait_until(lambda: len(_kept(collector, trace)) == 2, "the root follows")


def test_environment_is_what_the_collector_says(tmp_path: Path) -> None:
    """A process that calls its environment `local` is in the one that the collector stands for."""
    with run_collector(tmp_path, **QUICK, OTELCOL_ENVIRONMENT="canary", OTELCOL_BASELINE_PERCENT="100") as running:
        trace = new_trace()
        send(running, "traces", [span(trace, "one")], {names.DEPLOYMENT: "local"})
        wait_until(lambda: bool(_kept(running, trace)), "the trace is kept")
        resource = json.loads(running.kept.read_text(encoding="utf-8").splitlines()[0])["resourceSpans"][0]["resource"]

    assert {"key": names.DEPLOYMENT, "value": {"stringValue": "canary"}} in resource["attributes"]


def test_agents_speak_grpc_too(collector: Collector) -> None:
    """What an agent exports over gRPC goes the same way."""
    settings = TelemetrySettings(version="0", front_end="test", journal=False)
    before = collector.own("otelcol_receiver_accepted_spans_total", 'transport="grpc"')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.grpc_endpoint)
        patch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        with open_telemetry(settings) as telemetry:
            for event in golden_turn():
                for observer in telemetry.observers:
                    observer(event)
        (spans,) = (flow.exported for flow in telemetry.statistics() if flow.signal == names.TRACES)

    assert collector.own("otelcol_receiver_accepted_spans_total", 'transport="grpc"') == before + spans == before + 6


def test_a_full_queue_loses_what_comes_and_counts_it(tmp_path: Path) -> None:
    """With the store away, the queue takes what it may, and every span beyond that is told."""
    with run_collector(tmp_path, **QUICK, OTELCOL_QUEUE_SPANS="2000") as running:
        for _ in range(6):
            trace = new_trace()
            send(running, "traces", [span(trace, f"span {number}", status={"code": 2}) for number in range(500)])
        lost = "otelcol_exporter_enqueue_failed_spans_total"
        wait_until(
            lambda: running.own("otelcol_exporter_queue_size", "otlp_grpc") + running.own(lost) == 3000,
            "every span is queued or told as lost",
        )

        assert running.own(lost) == 1000


def test_logs_are_taken(collector: Collector) -> None:
    """Log records are accepted, so that an agent that exports them loses none on the way."""
    before = collector.own("otelcol_receiver_accepted_log_records_total")

    send(collector, "logs", [{"timeUnixNano": str(time.time_ns()), "body": {"stringValue": f"key {KEY}"}}])

    assert collector.own("otelcol_receiver_accepted_log_records_total") == before + 1


def test_logs_are_masked(tmp_path: Path) -> None:
    """With a second file that shows the log records, their texts and attributes hold neither key nor mail address."""
    shown = tmp_path / "shown.yaml"
    shown.write_text("exporters: {debug/logs: {verbosity: detailed}}", encoding="utf-8")
    record = {"body": {"stringValue": f"key {KEY} of {MAIL}"}, "attributes": pairs({"who": MAIL})}

    with run_collector(tmp_path, COLLECTOR_FILE, shown, **QUICK) as running:
        send(running, "logs", [{"timeUnixNano": str(time.time_ns()), **record}])
        wait_until(lambda: "Body: Str(" in running.log, "the record is shown")
        log = running.log

    assert "Body: Str(key **** of ****)" in log
    assert [secret for secret in SECRETS if secret in log] == []


def test_the_file_of_kept_traces_is_bounded(tmp_path: Path) -> None:
    """The file turns over at its size, and the oldest goes."""
    limits = {"OTELCOL_KEPT_MEGABYTES": "1", "OTELCOL_KEPT_BACKUPS": "2", "OTELCOL_BASELINE_PERCENT": "100"}
    with run_collector(tmp_path, **QUICK, **limits) as running:
        for _ in range(20):
            chaff: Attributes = {f"chaff.{number}": "x" * 4000 for number in range(60)}
            send(running, "traces", [span(new_trace(), "wide", chaff) for _ in range(2)])
        last = new_trace()
        send(running, "traces", [span(last, "last")])
        wait_until(lambda: bool(_kept(running, last)), "the last trace is kept")
        files = sorted(tmp_path.glob("kept*.jsonl"))

    assert 2 <= len(files) <= 3
    assert max(file.stat().st_size for file in files) <= 1024 * 1024
