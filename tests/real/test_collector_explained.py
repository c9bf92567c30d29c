"""What the real collector, with the shipped file, keeps of turns is explained as the journal explains them."""

from pathlib import Path

import pytest
from programs import run_collector, wait_until
from scripted_turns import TURNS, turns_to_explain

from recallscope.telemetry.explain.sentences import Sentences, sentences
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.open_source import open_source
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

QUICK = {
    "OTELCOL_DECISION_WAIT": "2s",
    "OTELCOL_DECISION_WAIT_AFTER_ROOT": "1s",
    "OTELCOL_BASELINE_PERCENT": "100",
    "OTELCOL_TRACES_ENDPOINT": "127.0.0.1:9",
    "OTELCOL_METRICS_ENDPOINT": "http://127.0.0.1:9/api/v1/write",
}


def _said(turn: RecordedTurn) -> Sentences:
    return sentences(turn, judge(turn))


def test_the_collectors_file_gives_the_journals_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that went through guard, redaction and tail sampling are explained by id and by trace as in the journal."""
    folder = tmp_path / "collector"
    folder.mkdir()
    with run_collector(folder, **QUICK) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        settings = TelemetrySettings(version="0", front_end="test", journal_directory=tmp_path / "journal")
        with open_telemetry(settings) as telemetry:
            for event in turns_to_explain():
                for observer in telemetry.observers:
                    observer(event)

        def kept() -> set[str]:
            source = open_source(str(collector.kept), journal=tmp_path) if collector.kept.exists() else None
            return {turn.turn for turn in source.turns() if turn.whole} if source is not None else set[str]()

        wait_until(lambda: kept() == set(TURNS), "the turns in the collector's file")
        source = open_source(str(collector.kept), journal=tmp_path)
        journal = JournalTurns([tmp_path / "journal"])
        for name in TURNS:
            recorded = journal.find(name)

            assert recorded.trace_id is not None
            assert _said(source.find(name)) == _said(source.find(recorded.trace_id)) == _said(recorded)
        assert [turn.turn for turn in source.slowest(top=2)] == [turn.turn for turn in journal.slowest(top=2)]
