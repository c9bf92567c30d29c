"""Settings that are each allowed and do not go together: a table of rules over the configuration and the environment.

A rule returns a sentence that names the keys, says what comes of them, and what to change; None where it does not hold.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from recallscope.runtime.cli.doctor.finding import Finding, fine, warning
from recallscope.runtime.config import Metrics, Selector, Settings
from recallscope.runtime.config.load import Origin
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import PolicyName
from recallscope.telemetry.names import BUCKETS_R, BUCKETS_T

__all__ = ["CHECK", "contradictions"]

CHECK = "settings"

LONGEST_NOTE = 1_200
"""Characters of a note's body that are delivered at most."""

DEADLINE_SELECTOR_SECONDS = 1.0
GRPC_PORT, HTTP_PORT = 4317, 4318

Environ = Mapping[str, str]
Rule = Callable[[Settings, PolicySplit, Environ], str | None]


def contradictions(settings: Settings, split: PolicySplit, environ: Environ) -> tuple[Finding, ...]:
    """Return a warning for each rule that holds, or one finding that none does."""
    found = tuple(warning(CHECK, text) for rule in _RULES if (text := rule(settings, split, environ)) is not None)
    return found or (fine(CHECK, "no settings contradict each other"),)


# Memory and recall


def _memory_off(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    asked = settings.sources["recall.policy"].origin is not Origin.DEFAULT
    if not settings.memory.enabled and asked and set(split.policies) != {PolicyName.OFF}:
        return (
            f"recall.policy is {settings.recall.policy} while memory.enabled is false, so nothing is recalled; "
            "set memory.enabled to true, or leave recall.policy out"
        )
    return None


def _split_with_off(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    if PolicyName.OFF in split.policies and len(split.policies) > 1:
        return (
            f"recall.policy {settings.recall.policy} has an arm off: its sessions recall nothing and stand in no "
            "recall metric, so compare it by recallscope_turn_duration_seconds alone"
        )
    return None


def _experiment_without_split(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    if settings.sources["recall.experiment"].origin is not Origin.DEFAULT and len(split.policies) == 1:
        return (
            f"recall.experiment is {settings.recall.experiment} while recall.policy has one arm, so it changes "
            "nothing; set a split such as tiered:90,prefetch:10"
        )
    return None


def _no_selector_for_deadline(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    if settings.recall.selector is Selector.NONE and PolicyName.DEADLINE in split.policies:
        return (
            "recall.selector is none under the policy deadline, which stands for waiting for a selector: the words "
            "settle at once and nothing of it is measured; set recall.selector to model"
        )
    return None


def _unused_small_model(settings: Settings, _: PolicySplit, __: Environ) -> str | None:
    if settings.recall.selector is Selector.NONE and settings.model.small is not None:
        return (
            f"recall.selector is none, so the small model {settings.model.small} is never asked; "
            "set recall.selector to model, or leave model.small out"
        )
    return None


def _no_budget(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    recall = settings.recall
    if set(split.policies) == {PolicyName.OFF} or not settings.memory.enabled:
        return None
    if recall.budget_notes == 0 or recall.budget_characters == 0:
        return (
            "recall.budget_notes or recall.budget_characters is 0, so every note is over the budget and none is "
            "delivered; raise it, or set recall.policy to off"
        )
    if recall.budget_characters < LONGEST_NOTE:
        return (
            f"recall.budget_characters is {recall.budget_characters}, less than one long note ({LONGEST_NOTE}), which "
            "is then never delivered; raise it"
        )
    return None


# Times


def _zero_ceiling(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    if settings.recall.ceiling_seconds == 0 and PolicyName.TIERED in split.policies:
        return "recall.ceiling_seconds is 0, so tiered waits for nothing; take the policy prefetch, or a ceiling of 0.1"
    return None


def _ceiling_above_first_byte(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    ceiling, first_byte = settings.recall.ceiling_seconds, settings.model.first_byte_seconds
    if PolicyName.TIERED in split.policies and ceiling >= first_byte:
        return (
            f"recall.ceiling_seconds ({ceiling:g}) is not below model.first_byte_seconds ({first_byte:g}): a send may "
            "be held for memory for as long as the model may take to begin; lower the ceiling"
        )
    return None


def _ceiling_above_safety(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    ceiling, safety = settings.recall.ceiling_seconds, settings.recall.selector_safety_seconds
    if PolicyName.TIERED in split.policies and ceiling > safety:
        return (
            f"recall.selector_safety_seconds ({safety:g}) ends the selector before recall.ceiling_seconds ({ceiling:g})"
            " does; raise it to 30, nobody waits for it"
        )
    return None


def _safety_below_deadline(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    safety = settings.recall.selector_safety_seconds
    if PolicyName.DEADLINE in split.policies and safety < DEADLINE_SELECTOR_SECONDS:
        return (
            f"recall.selector_safety_seconds ({safety:g}) cuts the selector before the limit of the policy deadline (1)"
            " does; raise it to 30"
        )
    return None


def _ceiling_between_buckets(settings: Settings, split: PolicySplit, _: Environ) -> str | None:
    ceiling = settings.recall.ceiling_seconds
    if PolicyName.TIERED in split.policies and ceiling > 0 and ceiling not in BUCKETS_R:
        return (
            f"recall.ceiling_seconds ({ceiling:g}) is no bucket boundary of the wait histograms, so percentiles of the "
            f"wait near it are rough; {_nearest(ceiling, BUCKETS_R):g} is one (overruns are counted exactly)"
        )
    return None


def _slow_between_buckets(settings: Settings, _: PolicySplit, __: Environ) -> str | None:
    slow = settings.telemetry.slow_turn_seconds
    if slow == 0:
        return "telemetry.slow_turn_seconds is 0, so every turn is marked as slow and kept; set it to 10.24"
    if slow not in BUCKETS_T:
        return (
            f"telemetry.slow_turn_seconds ({slow:g}) is no bucket boundary of the turn histograms, so the turns marked "
            f"as slow are not those that a query can count; {_nearest(slow, BUCKETS_T):g} is one"
        )
    return None


def _total_below_first_byte(settings: Settings, _: PolicySplit, __: Environ) -> str | None:
    model = settings.model
    for key, seconds in (("first_byte", model.first_byte_seconds), ("connect", model.connect_seconds)):
        if model.total_seconds < seconds:
            return (
                f"model.total_seconds ({model.total_seconds:g}) ends a send before model.{key}_seconds ({seconds:g}) "
                f"does, so model.attempts ({model.attempts}) are never made; raise the one or lower the other"
            )
    return None


def _few_sends(settings: Settings, _: PolicySplit, __: Environ) -> str | None:
    match settings.agent.max_sends:
        case 0:
            return "agent.max_sends is 0, so every turn ends before it asks the model; leave it out (100)"
        case 1:
            return "agent.max_sends is 1, so no tool result ever reaches the model, and no memory behind one; raise it"
        case _:
            return None


# Telemetry


def _disabled_with_exports(settings: Settings, _: PolicySplit, environ: Environ) -> str | None:
    wanted = [name for name in _ENDPOINTS if environ.get(name)]
    if settings.telemetry.metrics is Metrics.ON:
        wanted.append("telemetry.metrics = on")
    if _is_disabled(environ) and wanted:
        return f"OTEL_SDK_DISABLED switches off what {' and '.join(wanted)} ask for; unset the one or the others"
    return None


def _not_disabled(_: Settings, __: PolicySplit, environ: Environ) -> str | None:
    said = environ.get("OTEL_SDK_DISABLED", "").strip()
    if said and said.lower() not in {"true", "false"}:
        return f"OTEL_SDK_DISABLED={said} disables nothing, since only true does; write true or leave it out"
    return None


def _nothing_recorded(settings: Settings, _: PolicySplit, environ: Environ) -> str | None:
    telemetry = settings.telemetry
    exported = not _is_disabled(environ) and any(environ.get(name) for name in _ENDPOINTS)
    if not telemetry.journal and not exported and telemetry.metrics is not Metrics.ON:
        return "telemetry.journal is off and nothing is exported, so no turn can be explained; switch the journal on"
    return None


def _wrong_otlp_port(_: Settings, __: PolicySplit, environ: Environ) -> str | None:
    for name in _ENDPOINTS:
        try:
            port = urlsplit(environ.get(name, "")).port
        except ValueError:
            continue
        own = name.removesuffix("_ENDPOINT") + "_PROTOCOL"
        protocol = (environ.get(own) or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf").strip().lower()
        if (port, protocol) in {(GRPC_PORT, "http/protobuf"), (HTTP_PORT, "grpc")}:
            other = "grpc" if port == GRPC_PORT else "http/protobuf"
            return (
                f"{name} names port {port}, where {other} is usual, while {protocol} is spoken; set "
                f"OTEL_EXPORTER_OTLP_PROTOCOL={other}, or the port {HTTP_PORT if port == GRPC_PORT else GRPC_PORT}"
            )
    return None


def _sampled(_: Settings, __: PolicySplit, environ: Environ) -> str | None:
    sampler = environ.get("OTEL_TRACES_SAMPLER", "")
    if sampler and not sampler.endswith("always_on"):
        return (
            f"OTEL_TRACES_SAMPLER={sampler} drops traces before a collector can keep the slow and the failed ones; "
            "leave it out and sample in the collector"
        )
    return None


def _no_exemplars(_: Settings, __: PolicySplit, environ: Environ) -> str | None:
    if environ.get("OTEL_METRICS_EXEMPLAR_FILTER", "").strip().lower() == "always_off":
        return "OTEL_METRICS_EXEMPLAR_FILTER=always_off: no panel leads from a slow turn to its trace; leave it out"
    return None


def _open_metrics(settings: Settings, _: PolicySplit, __: Environ) -> str | None:
    host = settings.telemetry.metrics_host
    if host in {"0.0.0.0", "::"} and settings.telemetry.metrics is not Metrics.OFF:  # noqa: S104 - it is warned of
        return (
            f"telemetry.metrics_host is {host}, so /metrics is open to everybody who reaches this machine; that is "
            "right within a container, elsewhere take 127.0.0.1"
        )
    return None


_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    *(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT" for signal in ("TRACES", "METRICS", "LOGS")),
)

_RULES: tuple[Rule, ...] = (
    _memory_off,
    _split_with_off,
    _experiment_without_split,
    _no_selector_for_deadline,
    _unused_small_model,
    _no_budget,
    _zero_ceiling,
    _ceiling_above_first_byte,
    _ceiling_above_safety,
    _safety_below_deadline,
    _ceiling_between_buckets,
    _slow_between_buckets,
    _total_below_first_byte,
    _few_sends,
    _disabled_with_exports,
    _not_disabled,
    _nothing_recorded,
    _wrong_otlp_port,
    _sampled,
    _no_exemplars,
    _open_metrics,
)


def _is_disabled(environ: Environ) -> bool:
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def _nearest(value: float, bounds: tuple[float, ...]) -> float:
    return min(bounds, key=lambda bound: abs(bound - value))
