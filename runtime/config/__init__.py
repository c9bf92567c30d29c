"""The configuration: what may be set, where it comes from, and what is in force.

Values come from defaults, `recallscope.toml`, the environment and flags, in that order of rising strength; `load` puts
them together, and each value knows its source. Every wrong value or unknown key raises `ConfigError`.
"""

from recallscope.runtime.config.kinds import Secret
from recallscope.runtime.config.load import Flag, Origin, Settings, Source, load
from recallscope.runtime.config.settings import (
    AgentSettings,
    MemorySettings,
    Metrics,
    ModelSettings,
    ProjectKey,
    RecallSettings,
    Selector,
    SessionSettings,
    TelemetrySettings,
)

__all__ = [
    "AgentSettings",
    "Flag",
    "MemorySettings",
    "Metrics",
    "ModelSettings",
    "Origin",
    "ProjectKey",
    "RecallSettings",
    "Secret",
    "Selector",
    "SessionSettings",
    "Settings",
    "Source",
    "TelemetrySettings",
    "load",
]
