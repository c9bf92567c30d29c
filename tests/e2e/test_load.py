"""`recallscope load` as a process: what it plays, what it leaves behind, and how it ends."""

import json
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread

from recallscope.runtime.terms import PolicyName, Scenario
from recallscope.telemetry.read.scrape import scrape

if TYPE_CHECKING:
    from conftest import Place

ANY_PORT = {"OTEL_EXPORTER_PROMETHEUS_PORT": "0"}


@pytest.mark.anyio
async def test_it_plays_its_turns_and_says_what_it_played(place: "Place", tmp_path: Path) -> None:
    """JSON alone on stdout, progress on stderr, a journal where it was asked for, and nothing in the person's own."""
    done = await place.run(
        *("load", "--rate", "50", "--turns", "4", "--scenarios", "exact_title,nothing_found", "--seed", "1", "--json"),
        *("--policy", "prefetch", "--journal", str(tmp_path / "journal")),
        environ=place.environ(**ANY_PORT),
    )

    data = json.loads(done.out)
    lines = done.err.splitlines()
    files = list((tmp_path / "journal").glob("journal-*.jsonl"))
    assert (done.code, data["turns"], data["otherwise"]) == (0, 4, 0), done.err
    assert (data["kinds"], data["policies"]) == ({"nothing_found": 2, "exact_title": 2}, {"prefetch": 4})
    assert lines[0].startswith("playing 50 turns/s under prefetch, seed 1, metrics at http://127.0.0.1:")
    assert lines[-1].startswith("played 4 turns in ")
    assert (len(files), place.journal()) == (1, [])


@pytest.mark.anyio
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
async def test_a_signal_ends_it_in_an_orderly_way(place: "Place", number: signal.Signals, code: int) -> None:
    """Endless traffic whose metrics can be scraped; after the signal it says what was played and leaves."""
    arguments = ("load", "--rate", "20", "--scenarios", "nothing_found", "--policy", "tiered", "--json")
    async with place.start(*arguments, environ=place.environ(**ANY_PORT)) as running:
        await running.wait_for("metrics at http")
        url = bytes(running.err).decode().partition("metrics at ")[2].split()[0]
        while not any((figures := await to_thread.run_sync(scrape, url)).turns.values()):
            pass
        running.process.send_signal(number)
        done = await running.done()

    kinds = {(kind.row.policy, kind.row.scenario) for kind, count in figures.turns.items() if count}
    assert kinds == {(PolicyName.TIERED, Scenario.NOTHING_FOUND)}
    assert (done.code, json.loads(done.out)["otherwise"]) == (code, 0), done.err
    assert "played" in done.err.splitlines()[-1]


@pytest.mark.anyio
async def test_a_port_that_is_taken_is_a_warning(place: "Place") -> None:
    """The traffic is played all the same."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = await place.run(
            *("load", "--turns", "1", "--scenarios", "exact_title"),
            environ=place.environ(OTEL_EXPORTER_PROMETHEUS_PORT=port),
        )

    assert (done.code, done.out) == (0, "")
    assert "without /metrics" in done.err
    assert f"127.0.0.1:{port} cannot be opened" in done.err
