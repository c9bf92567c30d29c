"""`recallscope dashboards`: writes the shipped dashboards, rules, runbooks and the stack around them into a folder."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import click

from recallscope.dashboards import RUNBOOKS
from recallscope.runtime.cli.output import one_line

__all__ = ["dashboards", "shipped_files"]

PACKAGE: Final = "recallscope.dashboards"
FOLDERS: Final = ("grafana", "provisioning", "rules", "stack")
PAGES: Final = ("runbooks.md",)
_WEB_ADDRESS: Final = re.compile(r"https?://[^\s\"'#\\{}$]+")
NAMED: Final = 5
"""So many changed files are named, the others are counted."""


class _RefusedError(click.ClickException):
    """Nothing was written."""


def shipped_files(*, runbooks: str = RUNBOOKS) -> Mapping[str, bytes]:
    """Return every file that is for others than Python, by its path below the folder that is written.

    Links to runbooks lead to `runbooks`.
    """
    package = files(PACKAGE)
    found: dict[str, bytes] = {}
    for folder in FOLDERS:
        found.update(_below(package.joinpath(folder), folder))
    for page in PAGES:
        found[page] = package.joinpath(page).read_bytes()
    return {path: content.replace(RUNBOOKS.encode(), runbooks.encode()) for path, content in found.items()}


def _web_address(_context: click.Context, _parameter: click.Parameter, url: str) -> str:
    """Return an address as it may stand in JSON and YAML alike: links add `#` and a heading to it."""
    if not _WEB_ADDRESS.fullmatch(url):
        raise click.BadParameter(f"{url!r} is no address of a page: give https://… without # and quotes")
    return url


@click.command("dashboards")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--runbooks",
    metavar="URL",
    default=RUNBOOKS,
    callback=_web_address,
    help="Where your copy of runbooks.md can be read; dashboards and alerts link to it.",
)
@click.option("--force", is_flag=True, help="Write over files that were changed in DIR.")
def dashboards(directory: Path, *, runbooks: str, force: bool) -> int:
    """Write dashboards, rules, runbooks, Grafana's provisioning and a compose stack into DIR.

    Files that are there already and differ are left alone, and nothing is written, unless --force is given; other files
    in DIR are never touched.
    """
    shipped = shipped_files(runbooks=runbooks)
    try:
        changed = [path for path, content in shipped.items() if _differs(directory / path, content)]
        if changed and not force:
            raise _RefusedError(_refusal(directory, changed))
        missing = [path for path in shipped if not (directory / path).exists()]
        for path in (*missing, *changed):
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(shipped[path])
    except OSError as error:
        where = error.filename or directory
        raise _RefusedError(f"cannot write {where}: {error.strerror}; name a folder that can be written to") from error
    click.echo(one_line(_told(directory, len(missing), len(changed), len(shipped))))
    return 0


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _below(entry, f"{path}/{entry.name}")
        else:
            yield f"{path}/{entry.name}", entry.read_bytes()


def _differs(file: Path, content: bytes) -> bool:
    try:
        return file.read_bytes() != content
    except FileNotFoundError:
        return False


def _refusal(directory: Path, changed: list[str]) -> str:
    named = ", ".join(changed[:NAMED])
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    return f"{directory} holds other versions of {named}{more}: nothing was written; --force writes over them"


def _told(directory: Path, missing: int, changed: int, total: int) -> str:
    if not missing and not changed:
        return f"{directory}: all {total} files are there as shipped"
    over = f", {changed} of them over a changed one" if changed else ""
    return f"{directory}: {missing + changed} of {total} files written{over}"
