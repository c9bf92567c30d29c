"""Every key of the configuration, by section: its kind, its default and what it means.

A key `name` of the section `model` is `[model] name` in `recallscope.toml`, `RECALLSCOPE_MODEL_NAME` in the
environment and `model.name` everywhere else.
"""

# ruff: noqa: RUF009 - `_key` makes the dataclass field itself

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import Path
from typing import Any, TypeVar, cast

from recallscope.runtime.config.kinds import (
    FILE,
    FOLDER,
    HOST,
    OPTIONAL_FOLDER,
    OPTIONAL_TEXT,
    SECRET,
    SWITCH,
    TEXT,
    URL,
    Kind,
    Secret,
    choice,
    number,
    optional_whole,
    seconds,
    whole,
)

__all__ = [
    "KEYS",
    "SECTIONS",
    "AgentSettings",
    "Key",
    "MemorySettings",
    "Metrics",
    "ModelSettings",
    "ProjectKey",
    "RecallSettings",
    "Selector",
    "SessionSettings",
    "TelemetrySettings",
]

T = TypeVar("T")

Default = str | Callable[[Mapping[str, str]], str]
"""A default as text, or as a function of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: `standard` names an environment variable that other programs read too; our own one goes before it."""

    name: str
    kind: Kind[Any]
    default: Default
    doc: str
    standard: str | None

    @property
    def variable(self) -> str:
        """Return the environment variable of our own that sets this key."""
        return "RECALLSCOPE_" + self.name.upper().replace(".", "_")


def _key(kind: Kind[T], default: Default, doc: str, *, standard: str | None = None) -> T:
    metadata = {"kind": kind, "default": default, "doc": doc, "standard": standard}
    return cast("T", dataclasses.field(metadata=metadata))


def _below(variable: str, otherwise: str, *parts: str) -> Default:
    def default(environ: Mapping[str, str]) -> str:
        base = environ.get(variable, "")
        return str(Path(base if Path(base).is_absolute() else otherwise, *parts))

    return default


@unique
class Selector(StrEnum):
    """Who chooses the refined notes."""

    MODEL = "model"
    NONE = "none"


@unique
class Metrics(StrEnum):
    """Whether `/metrics` is served; `AUTO` leaves it to the command."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@unique
class ProjectKey(StrEnum):
    """What a project is known by: the nearest folder with a `.git` entry, or the workspace itself."""

    GIT_ROOT = "git-root"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The models and how they are asked."""

    name: str | None = _key(OPTIONAL_TEXT, "", "the main model, by the name that its server knows")
    small: str | None = _key(OPTIONAL_TEXT, "", "the small model that selects notes; empty: the main model selects")
    base_url: str | None = _key(
        URL, "", "where the main model is served; empty: the client library's default", standard="OPENAI_BASE_URL"
    )
    api_key: Secret | None = _key(SECRET, "", "the credential for the main model", standard="OPENAI_API_KEY")
    small_base_url: str | None = _key(URL, "", "where the small model is served; empty: where the main one is")
    small_api_key: Secret | None = _key(
        SECRET, "", "the credential for the small model; empty: the main one's, if both are served by the same host"
    )
    embedding: str | None = _key(
        OPTIONAL_TEXT, "", "the model whose vectors find notes without a shared word; empty: none (extra: semantic)"
    )
    embedding_base_url: str | None = _key(URL, "", "where that model is served; empty: where the main one is")
    embedding_api_key: Secret | None = _key(
        SECRET, "", "the credential for that model; empty: the main one's, if both are served by the same host"
    )
    stream: bool = _key(SWITCH, "true", "ask for streamed answers")
    attempts: int = _key(whole(1, 20), "4", "how often one send is tried at most")
    total_seconds: float = _key(seconds(0.1, 3600), "120", "the longest that one send may take, its attempts included")
    connect_seconds: float = _key(seconds(0.1, 600), "10", "the longest wait for a connection")
    first_byte_seconds: float = _key(seconds(0.1, 3600), "60", "the longest wait for the first byte of an answer")
    silence_seconds: float = _key(seconds(0.1, 3600), "60", "the longest silence within an answer")
    max_tokens: int | None = _key(optional_whole(10_000_000), "0", "the most tokens of one answer; 0: the server's own")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Where the notes are."""

    enabled: bool = _key(SWITCH, "true", "use memory at all")
    base_dir: Path = _key(FOLDER, "~/.recallscope", "the folder that holds memory/ and projects/")
    project_dir: Path | None = _key(
        OPTIONAL_FOLDER, "", "the project's memory folder; empty: below base_dir, by the workspace"
    )
    project_key: ProjectKey = _key(
        choice(ProjectKey), "git-root", "what tells projects apart: the folder with .git, or the workspace itself"
    )
    team_dir: Path | None = _key(
        OPTIONAL_FOLDER, "", "a folder of notes that a team shares, in the repository or on a mount; empty: none"
    )
    tenant: str | None = _key(
        OPTIONAL_TEXT, "", "whose memory it is where one service serves many: all of it below base_dir/tenants/"
    )
    cache_dir: Path = _key(
        FOLDER, _below("XDG_CACHE_HOME", "~/.cache", "recallscope"), "the folder of the catalog, on a local disk"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How memory meets the turn."""

    policy: str = _key(TEXT, "tiered", "off, deadline, prefetch, tiered, or a split such as tiered:90,prefetch:10")
    experiment: str = _key(TEXT, "policy", "the name of the experiment that a split policy belongs to")
    ceiling_seconds: float = _key(seconds(0, 10), "0.1", "the longest that the first send waits under tiered")
    budget_notes: int = _key(whole(0, 100), "5", "the most notes that one turn receives")
    budget_characters: int = _key(whole(0, 1_000_000), "8000", "the most characters of notes that one turn receives")
    selector: Selector = _key(choice(Selector), "model", "who chooses the refined notes; none: the words alone")
    vector_threshold: float = _key(
        number(-1, 1), "0.5", "the least likeness (cosine) of a note that its vector alone delivers"
    )
    selector_safety_seconds: float = _key(seconds(0.1, 600), "30", "the end of a selection that nobody waits for")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The agent."""

    name: str = _key(TEXT, "recallscope", "the agent's name in traces and metrics")
    system_prompt_file: Path | None = _key(FILE, "", "a file with the system prompt; empty: the built-in one")
    max_sends: int = _key(whole(0, 10_000), "100", "the most sends of one turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The conversation."""

    workspace: Path = _key(FOLDER, ".", "the folder that tools are confined to")
    max_turns: int | None = _key(optional_whole(1_000_000), "0", "the most turns of one session; 0: no limit")
    max_tokens: int | None = _key(
        optional_whole(1_000_000_000), "0", "the tokens, in and out, after which a session sends no more; 0: no limit"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What is told to the outside; exporters are configured by the standard OTEL_ variables."""

    journal: bool = _key(SWITCH, "true", "keep the journal")
    journal_dir: Path = _key(
        FOLDER, _below("XDG_STATE_HOME", "~/.local/state", "recallscope", "journal"), "the folder of the journal"
    )
    slow_turn_seconds: float = _key(seconds(0, 86_400), "10.24", "a turn that passes this is marked to be kept")
    metrics: Metrics = _key(choice(Metrics), "auto", "serve /metrics; auto: the commands that need it do")
    metrics_host: str = _key(
        HOST, "127.0.0.1", "the address that /metrics is served at", standard="OTEL_EXPORTER_PROMETHEUS_HOST"
    )
    metrics_port: int = _key(
        whole(0, 65_535), "9464", "its port; 0: any free one", standard="OTEL_EXPORTER_PROMETHEUS_PORT"
    )
    prometheus_token: Secret | None = _key(SECRET, "", "the bearer token for the Prometheus that commands read from")


SECTIONS: Mapping[str, type[Any]] = {
    "model": ModelSettings,
    "memory": MemorySettings,
    "recall": RecallSettings,
    "agent": AgentSettings,
    "session": SessionSettings,
    "telemetry": TelemetrySettings,
}

KEYS: Mapping[str, Key] = {
    key.name: key
    for section, settings in SECTIONS.items()
    for field in dataclasses.fields(settings)
    for key in [Key(name=f"{section}.{field.name}", **field.metadata)]
}
