"""The doctor's rules about settings: each holds where it should, alone, and none holds for a usual configuration."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from recallscope.runtime.cli.compose import policy_split
from recallscope.runtime.cli.doctor.contradictions import contradictions
from recallscope.runtime.cli.doctor.finding import Finding, State, failed, fine, not_applicable, warning, worst
from recallscope.runtime.cli.doctor.memory import check_recall
from recallscope.runtime.config import Flag, Settings, load

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def _settings(tmp_path: Path, values: Mapping[str, str]) -> Settings:
    flags = {key: Flag("--set", value) for key, value in values.items()}
    return load(environ={}, cwd=tmp_path, home=tmp_path, flags=flags)


def _found(tmp_path: Path, values: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Finding, ...]:
    settings = _settings(tmp_path, values)
    return contradictions(settings, policy_split(settings), environ)


@pytest.mark.parametrize(
    ("values", "environ"),
    [
        ({}, {}),
        ({"recall.policy": "tiered:90,prefetch:10", "recall.experiment": "ceilings"}, {}),
        ({"recall.ceiling_seconds": "0.25", "telemetry.slow_turn_seconds": "20.48"}, {}),
        ({"recall.policy": "prefetch", "recall.ceiling_seconds": "0.12"}, {}),
        ({"recall.policy": "deadline"}, {ENDPOINT: "http://127.0.0.1:4318"}),
        ({"memory.enabled": "false"}, {}),
        ({"telemetry.journal": "false"}, {ENDPOINT: "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
        ({}, {"OTEL_TRACES_SAMPLER": "parentbased_always_on", "OTEL_SDK_DISABLED": "false"}),
        ({}, {ENDPOINT: "http://127.0.0.1:port"}),
    ],
)
def test_settings_that_go_together(tmp_path: Path, values: dict[str, str], environ: dict[str, str]) -> None:
    """One finding that says so."""
    assert _found(tmp_path, values, environ) == (fine("settings", "no settings contradict each other"),)


@pytest.mark.parametrize(
    ("values", "environ", "sentence"),
    [
        ({"memory.enabled": "false", "recall.policy": "tiered"}, {}, "while memory.enabled is false"),
        ({"recall.policy": "tiered:90,off:10"}, {}, "has an arm off"),
        ({"recall.experiment": "ceilings"}, {}, "recall.experiment is ceilings while recall.policy has one arm"),
        (
            {"recall.policy": "deadline", "recall.selector": "none"},
            {},
            "recall.selector is none under the policy deadline",
        ),
        ({"recall.selector": "none", "model.small": "tiny"}, {}, "so the small model tiny is never asked"),
        ({}, {"OTEL_SDK_DISABLED": "yes"}, "OTEL_SDK_DISABLED=yes disables nothing, since only true does"),
        ({"recall.budget_notes": "0"}, {}, "every note is over the budget"),
        ({"recall.budget_characters": "1000"}, {}, "less than one long note (1200)"),
        ({"recall.ceiling_seconds": "0"}, {}, "recall.ceiling_seconds is 0, so tiered waits for nothing"),
        (
            {"recall.ceiling_seconds": "2.5", "model.first_byte_seconds": "2"},
            {},
            "recall.ceiling_seconds (2.5) is not below model.first_byte_seconds (2)",
        ),
        (
            {"recall.ceiling_seconds": "5", "recall.selector_safety_seconds": "2"},
            {},
            "recall.selector_safety_seconds (2) ends the selector before recall.ceiling_seconds (5)",
        ),
        (
            {"recall.policy": "deadline", "recall.selector_safety_seconds": "0.5"},
            {},
            "recall.selector_safety_seconds (0.5) cuts the selector before the limit of the policy deadline",
        ),
        ({"recall.ceiling_seconds": "0.12"}, {}, "(0.12) is no bucket boundary of the wait histograms"),
        ({"telemetry.slow_turn_seconds": "10"}, {}, "are not those that a query can count; 10.24 is one"),
        ({"telemetry.slow_turn_seconds": "0"}, {}, "every turn is marked as slow"),
        (
            {"model.total_seconds": "30"},
            {},
            "model.total_seconds (30) ends a send before model.first_byte_seconds (60)",
        ),
        (
            {"model.total_seconds": "5", "model.first_byte_seconds": "5"},
            {},
            "model.total_seconds (5) ends a send before model.connect_seconds (10)",
        ),
        ({"agent.max_sends": "0"}, {}, "every turn ends before it asks the model"),
        ({"agent.max_sends": "1"}, {}, "no tool result ever reaches the model"),
        ({"telemetry.metrics": "on"}, {"OTEL_SDK_DISABLED": "true"}, "switches off what telemetry.metrics = on ask"),
        ({}, {"OTEL_SDK_DISABLED": "True", ENDPOINT: "http://127.0.0.1:4318"}, f"switches off what {ENDPOINT} ask"),
        ({"telemetry.journal": "false"}, {}, "so no turn can be explained"),
        ({}, {ENDPOINT: "http://127.0.0.1:4317"}, "names port 4317, where grpc is usual"),
        (
            {},
            {
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            },
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names port 4318, where http/protobuf is usual",
        ),
        ({}, {"OTEL_TRACES_SAMPLER": "traceidratio"}, "OTEL_TRACES_SAMPLER=traceidratio drops traces"),
        ({}, {"OTEL_METRICS_EXEMPLAR_FILTER": "always_off"}, "no panel leads from a slow turn to its trace"),
        ({"telemetry.metrics_host": "::"}, {}, "/metrics is open to everybody"),
    ],
)
def test_settings_that_do_not_go_together(
    tmp_path: Path, values: dict[str, str], environ: dict[str, str], sentence: str
) -> None:
    """One warning that names the keys and what comes of them, and no other."""
    [finding] = _found(tmp_path, values, environ)

    assert finding.state is State.WARNING
    assert sentence in finding.text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, fine("recall", "turns recall under tiered, ceiling 100 ms")),
        ({"recall.policy": "prefetch"}, fine("recall", "turns recall under prefetch")),
        ({"recall.policy": "off"}, warning("recall", "recall is off: recall.policy is off; set it to tiered")),
        ({"memory.enabled": "false"}, warning("recall", "recall is off: memory.enabled is false; set it to true")),
    ],
)
def test_whether_turns_recall_is_said(tmp_path: Path, values: dict[str, str], expected: Finding) -> None:
    """The policy in force and its ceiling, or what switches recall off."""
    settings = _settings(tmp_path, values)

    assert check_recall(settings, policy_split(settings)) == expected


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        (warning("memory", "no usable memory root: none is there, so nothing is recalled; write a note"), "see memory"),
        (failed("catalog", "it cannot be read"), "see catalog"),
    ],
)
def test_recall_is_not_called_well_where_nothing_is_recalled(tmp_path: Path, memory: Finding, told: str) -> None:
    """The line on recall agrees with those on memory."""
    settings = _settings(tmp_path, {})

    found = check_recall(settings, policy_split(settings), (fine("notes", "every file is in order"), memory))

    assert found == not_applicable(
        "recall", f"turns would recall under tiered, ceiling 100 ms, and there is nothing to recall: {told}"
    )


def test_the_worst_finding_decides() -> None:
    """Failed before warning before ok; what does not apply is nothing."""
    findings = [fine("a", ""), not_applicable("b", ""), warning("c", ""), failed("d", "")]

    assert [worst(findings[:count]) for count in (0, 1, 2, 3, 4)] == [
        *(State.OK, State.OK, State.OK, State.WARNING, State.FAILED),
    ]
