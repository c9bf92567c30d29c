"""The doctor's look at clocks: steps, impossible times, and other machines' `Date` headers."""

import email.utils
from pathlib import Path

import pytest

from recallscope.runtime.cli.doctor.clock import ClockReading, check_against_others, check_steps, date_of, servers
from recallscope.runtime.cli.doctor.finding import State
from recallscope.runtime.config import Flag, load
from recallscope.telemetry.testing.receiver import OtlpReceiver

NOW = 1_796_000_000.0


@pytest.mark.parametrize(
    ("wall", "monotonic", "state"),
    [
        (NOW + 1.0, 1.0, State.OK),
        (NOW + 1.04, 1.0, State.OK),
        (NOW + 1.2, 1.0, State.WARNING),
        (NOW + 0.5, 1.0, State.WARNING),
        (946_684_800.0, 1.0, State.FAILED),
    ],
)
def test_a_clock_that_steps_or_cannot_be_right_is_told(wall: float, monotonic: float, state: State) -> None:
    """Up to 50 ms are jitter; a time before this program existed is a fault."""
    assert check_steps(ClockReading(NOW, 0.0), ClockReading(wall, monotonic)).state is state


@pytest.mark.parametrize(
    ("stated", "state", "words"),
    [
        (NOW, State.OK, "it agrees with that of one.example"),
        (NOW - 0.9, State.OK, "agrees"),
        (NOW + 2.0, State.OK, "agrees"),
        (NOW + 3.0, State.WARNING, "3 s behind that of one.example"),
        (NOW - 11.0, State.WARNING, "10 s ahead of that of one.example"),
        (NOW - 4000.0, State.FAILED, "ahead of that of one.example"),
        (None, State.NOT_APPLICABLE, "states its time"),
    ],
)
def test_a_clock_is_compared_with_that_of_a_server(stated: float | None, state: State, words: str) -> None:
    """A header has whole seconds, so two seconds apart are none; five minutes are a fault."""
    finding = check_against_others(["https://name:secret@one.example/v1"], ask=lambda _: stated, wall=lambda: NOW)

    assert finding.state is state
    assert words in finding.text
    assert "secret" not in finding.text


def test_a_server_that_states_no_time_is_passed_over() -> None:
    """The other one counts."""
    finding = check_against_others(
        ["http://silent", "http://one"], ask=lambda url: None if "silent" in url else NOW, wall=lambda: NOW
    )

    assert (finding.state, finding.text) == (State.OK, "it agrees with that of one")


def test_the_date_of_any_answer_counts() -> None:
    """A refusal has one as well; where nobody answers there is none."""
    with OtlpReceiver() as receiver:
        stated = date_of(receiver.http_endpoint)
        url = receiver.http_endpoint

    assert stated is not None
    assert email.utils.formatdate(stated, usegmt=True).endswith("GMT")
    assert date_of(url) is None


def test_the_servers_that_are_asked(tmp_path: Path) -> None:
    """The model's if one is configured, and the collector's if it speaks HTTP."""
    none = load(environ={}, cwd=tmp_path, home=tmp_path)
    model = load(environ={}, cwd=tmp_path, home=tmp_path, flags={"model.name": Flag("--set", "m")})
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}

    assert servers(none, {}) == ()
    assert servers(model, endpoint) == ("https://api.openai.com/v1", "http://collector:4318")
    assert servers(none, endpoint | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == ()
