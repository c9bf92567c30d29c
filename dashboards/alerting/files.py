"""The rule files: which rules stand in which file. Alerts of another part are one module and one line here."""

from typing import Final

from recallscope.dashboards.alerting import collector, health, levels, recall, turns
from recallscope.dashboards.alerting.config import Config
from recallscope.dashboards.alerting.model import Alert, Group, write_groups

__all__ = ["ALERTS", "COLLECTOR", "RECORDING", "every_alert", "rule_files"]

RECORDING: Final = "recallscope-recording.yaml"
ALERTS: Final = "recallscope-alerts.yaml"
COLLECTOR: Final = "collector-alerts.yaml"


def alert_groups(config: Config) -> tuple[Group, ...]:
    """Return the alerts on Recallscope itself."""
    parts = {
        "recallscope-levels-burn": levels.alerts,
        "recallscope-turns": turns.alerts,
        "recallscope-recall": recall.alerts,
        "recallscope-telemetry": health.alerts,
    }
    return tuple(Group(name=name, interval="30s", rules=alerts(config)) for name, alerts in parts.items())


def collector_groups(config: Config) -> tuple[Group, ...]:
    """Return the alerts on the collector."""
    return (Group(name="recallscope-collector", interval="30s", rules=collector.alerts(config)),)


def every_alert(config: Config) -> tuple[Alert, ...]:
    """Return all alerts, in the order of the files."""
    groups = (*alert_groups(config), *collector_groups(config))
    return tuple(rule for group in groups for rule in group.rules if isinstance(rule, Alert))


def rule_files(config: Config) -> dict[str, str]:
    """Return the content of each rule file by its name."""
    files = {
        RECORDING: levels.recordings(config),
        ALERTS: alert_groups(config),
        COLLECTOR: collector_groups(config),
    }
    return {name: write_groups(groups, runbooks=config.runbooks) for name, groups in files.items()}
