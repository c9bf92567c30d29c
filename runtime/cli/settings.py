"""How a command gets the configuration in force: the process's environment, the global options and its own flags."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from recallscope.runtime.cli.group import Given
from recallscope.runtime.config import Flag, Settings, load
from recallscope.runtime.config.masking import mask_text
from recallscope.runtime.recall.policy import PolicySplit

__all__ = ["settings_in_force"]


def settings_in_force(context: click.Context, flags: Mapping[str, Flag] | None = None) -> Settings:
    """Return the settings for the command of `context`; a flag whose value is None was not given.

    The strength rises from defaults over the file, the environment and `--set` to `flags`.

    Raises:
        ConfigError: a wrong value or an unknown key, wherever it stands.
        click.UsageError: a `--set` that is no `KEY=VALUE`.
    """
    given = context.find_object(Given) or Given(None, ())
    assigned = {key: Flag("--set", value) for key, value in (_assignment(text) for text in given.assignments)}
    own = {key: flag for key, flag in (flags or {}).items() if flag.value is not None}
    file = None if given.file is None else Path(given.file)
    settings = load(environ=os.environ, cwd=Path.cwd(), home=Path.home(), file=file, flags={**assigned, **own})
    # The rules of a split policy are recall's; a wrong one is told here, before a command does anything.
    PolicySplit.parse(settings.recall.policy, source=settings.source("recall.policy"))
    return settings


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--set {mask_text(text)}: it must be KEY=VALUE, such as recall.policy=prefetch")
    return key.strip(), value
