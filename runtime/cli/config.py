"""`recallscope config`: what is in force, where it came from, credentials masked."""

import json
import os
from collections.abc import Iterator, Mapping

import click

from recallscope.runtime.cli.output import for_stdout
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.config import Settings
from recallscope.runtime.config.masking import MASK, is_credential, mask_text

__all__ = ["config"]

SCHEMA = 1
# Exporters read these themselves; headers and keys among them are credentials.
_STANDARD = "OTEL_"


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def config(context: click.Context, as_json: bool) -> None:
    """Print the configuration in force and where each value came from."""
    settings = settings_in_force(context)
    standard = dict(_standard(os.environ))
    text = json.dumps(_object(settings, standard), indent=2) if as_json else _table(settings, standard)
    click.echo(for_stdout(text))


def _object(settings: Settings, standard: Mapping[str, str]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "file": None if settings.file is None else str(settings.file),
        "settings": {
            entry.key: {
                "value": entry.value,
                "source": {"origin": entry.source.origin.value, "name": entry.source.name or None},
                "meaning": entry.doc,
            }
            for entry in settings.entries()
        },
        "opentelemetry": dict(standard),
    }


def _table(settings: Settings, standard: Mapping[str, str]) -> str:
    rows = [(entry.key, _text(entry.value), str(entry.source)) for entry in settings.entries()]
    rows += [(variable, value, "environment") for variable, value in standard.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    file = "no recallscope.toml was read" if settings.file is None else f"file: {settings.file}"
    lines = [f"{key:{widths[0]}}  {value:{widths[1]}}  {source}" for key, value, source in rows]
    return "\n".join([file, "", *lines])


def _text(value: str | float | bool | None) -> str:
    match value:
        case None:
            return "(none)"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _standard(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for variable in sorted(environ):
        if variable.startswith(_STANDARD):
            yield variable, MASK if is_credential(variable) else mask_text(environ[variable])
