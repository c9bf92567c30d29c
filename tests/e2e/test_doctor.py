"""`recallscope doctor` as a process: on a sound set-up, and on one in which much is wrong."""

import json
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from recallscope.runtime.lab.scenarios import SMALL_MODEL, build_script
from recallscope.runtime.testing.model_server import serve
from recallscope.runtime.testing.script import Script, Step
from recallscope.telemetry.names import DOCTOR_SPAN
from recallscope.telemetry.testing.receiver import OtlpReceiver

if TYPE_CHECKING:
    from conftest import Done, Place

ANY_PORT = {"OTEL_EXPORTER_PROMETHEUS_PORT": "0", "RECALLSCOPE_RECALL_CEILING_SECONDS": "0.1"}


async def _doctor(place: "Place", environ: Mapping[str, str]) -> "tuple[Done, dict[str, str], dict[str, str]]":
    """Run it and return how it ended, the states and the sentences of its checks."""
    done = await place.run("doctor", "--json", environ=environ)
    data: dict[str, Any] = json.loads(done.out)
    assert data["schema"] == 1
    states = {check["check"]: check["state"] for check in data["checks"]}
    return done, states, {check["check"]: check["text"] for check in data["checks"]}


@pytest.mark.anyio
async def test_a_sound_set_up(place: "Place") -> None:
    """Every check is ok, the models were asked, the endpoint has one span, and nothing was left in the journal."""
    async with serve(build_script()) as server:
        with OtlpReceiver() as receiver:
            environ = place.environ(server.url, RECALLSCOPE_MODEL_SMALL=SMALL_MODEL, **ANY_PORT)
            done, states, texts = await _doctor(place, environ | receiver.environ())
        purposes = sorted(request.purpose or "" for request in server.requests if request.method == "POST")
        spans = [span.name for span in receiver.spans()]

    assert states == dict.fromkeys(states, "ok"), texts
    assert list(states) == [
        *("settings", "model", "selector", "recall", "memory", "catalog", "notes", "observers", "journal", "metrics"),
        *("otlp traces", "otlp metrics", "clock", "clock of others"),
    ]
    assert done.code == 0
    assert (purposes, spans, place.journal()) == (["main", "memory_selection"], [DOCTOR_SPAN], [])
    assert texts["catalog"].startswith("8 notes, searched in ")


@pytest.mark.anyio
async def test_much_is_wrong(place: "Place", free_port: int) -> None:
    """A model that refuses, a selector without a list, a dead endpoint, a taken port, a journal nobody may write."""
    blocked = place.home / "file"
    blocked.write_text("no folder", encoding="utf-8")
    script = Script.of(Step(status=401, body="bad key"), memory_selection=Step(answer="the first one"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with serve(script) as server:
            done, states, texts = await _doctor(
                place,
                place.environ(
                    server.url,
                    OTEL_EXPORTER_PROMETHEUS_PORT=str(taken.getsockname()[1]),
                    OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{free_port}",
                    OTEL_METRICS_EXPORTER="none",
                    RECALLSCOPE_TELEMETRY_JOURNAL_DIR=str(blocked / "journal"),
                    RECALLSCOPE_RECALL_CEILING_SECONDS="0.12",
                ),
            )

    assert done.code == 1
    assert {check for check, state in states.items() if state == "failed"} == {
        *("model", "selector", "journal", "otlp traces"),
    }
    assert {check for check, state in states.items() if state == "warning"} == {"settings", "metrics"}
    assert "401" in texts["model"]
    assert "check the API key" in texts["model"]
    assert "the selection is no JSON object" in texts["selector"]
    assert (
        f"http://127.0.0.1:{free_port} over http/protobuf did not take a span: Connection refused"
        in texts["otlp traces"]
    )
    assert "no /metrics answers there; set telemetry.metrics_port" in texts["metrics"]
    assert "cannot be written to" in texts["journal"]
    assert "recall.ceiling_seconds (0.12) is no bucket boundary" in texts["settings"]


@pytest.mark.anyio
async def test_nothing_is_there_yet(place: "Place") -> None:
    """In an empty home: no model fails, no folder is a warning, and each sentence says what to do."""
    environ = place.environ(**ANY_PORT, RECALLSCOPE_MEMORY_PROJECT_DIR=str(place.home / "nowhere"))
    done = await place.run("doctor", environ=environ)

    lines = {line[9:25].strip(): line for line in done.out.splitlines() if line}
    assert done.code == 1
    assert "no model is configured: set OPENAI_BASE_URL" in lines["model"]
    assert lines["memory"].startswith("warning  memory")
    assert "no usable memory root" in lines["memory"]
    assert "write a note with `recallscope memory add`" in lines["memory"]
    assert lines["otlp"].startswith("-  ")
    assert done.out.splitlines()[-1] == "1 failed, 2 warnings."


@pytest.mark.anyio
async def test_a_running_process_that_serves_the_port_is_known(place: "Place", free_port: int) -> None:
    """Its command is named, and its metrics scrape."""
    port = {"OTEL_EXPORTER_PROMETHEUS_PORT": str(free_port)}
    async with place.start("load", "--rate", "0.1", environ=place.environ(**port)) as running:
        await running.wait_for("metrics at http")
        _, states, texts = await _doctor(place, place.environ(**port))
        running.process.terminate()
        await running.done()

    assert states["metrics"] == "ok"
    assert texts["metrics"].startswith("`recallscope load` (process ")


@pytest.mark.anyio
async def test_a_cache_that_cannot_be_used_and_a_broken_note_are_warnings(place: "Place") -> None:
    """The search works in a temporary catalog, and the problems of the files are counted."""
    blocked = place.home / "file"
    blocked.write_text("no folder", encoding="utf-8")
    (place.notes / "project" / "broken.md").write_text("---\nname: [broken\n", encoding="utf-8")
    _, states, texts = await _doctor(place, place.environ(**ANY_PORT, RECALLSCOPE_MEMORY_CACHE_DIR=str(blocked / "x")))

    assert (states["catalog"], states["notes"], states["observers"]) == ("warning", "warning", "ok")
    assert texts["catalog"].startswith(f"8 notes, in a temporary catalog, since {blocked}/x/")
    assert texts["notes"] == "problems in the files: 1 skipped; `recallscope memory check` lists them"
