"""Build hook: lay out the links that make an editable install import as `recallscope.*`."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("runtime", "telemetry", "dashboards")


class LinkHook(BuildHookInterface[Any]):
    """Make `.editable/recallscope/<package>` point at the root folders, for editable installs only.

    Hatchling cannot map a prefix in an editable install, and import hooks blind the type checkers;
    real links serve pip, mypy, pyright and coverage alike.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Create the links before an editable build; other builds need none."""
        if version != "editable":
            return
        namespace = Path(self.root, ".editable", "recallscope")
        namespace.mkdir(parents=True, exist_ok=True)
        for name in PACKAGES:
            link = namespace / name
            target = Path("..", "..", name)
            if link.is_symlink() and link.readlink() == target:
                continue
            link.unlink(missing_ok=True)
            link.symlink_to(target, target_is_directory=True)
