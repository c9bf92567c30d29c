"""`recallscope memory export` and `import`: notes as an archive or a folder, out and in."""

import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import click

from recallscope.runtime.cli.memory.place import Place, json_option, place_options
from recallscope.runtime.cli.memory.printing import print_json, print_text
from recallscope.runtime.cli.output import complain, one_line
from recallscope.runtime.errors import TransferError
from recallscope.runtime.memory.archive import MAX_UNPACKED_BYTES
from recallscope.runtime.memory.store import sync_folder
from recallscope.runtime.memory.transfer import (
    Exported,
    Fate,
    Imported,
    OnConflict,
    archive_writer,
    export_notes,
    folder_writer,
    import_notes,
)
from recallscope.runtime.terms import ScopeName

__all__ = ["export", "import_"]

_ARCHIVES = (".tar.gz", ".tgz")
_OTHERS = (".tar", ".gz", ".zip", ".bz2", ".xz", ".zst", ".7z", ".md", ".json")


@click.command("export")
@click.argument("target", metavar="TARGET")
@click.option("--force", is_flag=True, help="Replace an archive that exists.")
@place_options
@json_option
@click.pass_context
def export(
    context: click.Context, *, target: str, force: bool, scope: str | None, directory: Path | None, as_json: bool
) -> int:
    """Copy the notes into TARGET: a file .tar.gz, a new or empty folder, or - for an archive on stdout.

    Equal notes make equal archives. Files that are no notes or hold a credential are left out and named: exit code 1.
    """
    if not target.strip():  # a variable that was not set: the working folder is not what is meant
        raise click.UsageError("TARGET is empty; name a file .tar.gz, a new or empty folder, or - for stdout")
    place = Place.of(context, directory, scope)
    if target == "-":
        if as_json:
            raise click.UsageError("--json and - would both write to stdout; give a file")
        if sys.stdout.isatty():
            raise click.UsageError("an archive is no text for a terminal: give a file, or send stdout somewhere")
        with archive_writer(sys.stdout.buffer) as write:
            exported = export_notes(place.asked, write)
        sys.stdout.flush()  # what is told below is true
        _tell_exported(exported, target, as_json=False, err=True)
    else:
        path = Path(target)
        _refuse_inside(place, path)
        if target.lower().endswith(_ARCHIVES):
            exported = _to_archive(place, path, force=force)
        elif path.suffix.lower() in _OTHERS and not path.is_dir():
            raise click.UsageError(f"{target}: an export is a file .tar.gz or a folder")
        else:
            exported = export_notes(place.asked, folder_writer(path))
        _tell_exported(exported, target, as_json=as_json, err=False)
    return 1 if exported.left_out else 0


@click.command("import")
@click.argument("source", metavar="SOURCE")
@click.option(
    "--on-conflict",
    type=click.Choice([rule.value for rule in OnConflict]),
    default=OnConflict.SKIP.value,
    show_default=True,
    help="What to do where another note stands at the same path.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@place_options
@json_option
@click.pass_context
def import_(
    context: click.Context,
    *,
    source: str,
    on_conflict: str,
    dry_run: bool,
    scope: str | None,
    directory: Path | None,
    as_json: bool,
) -> int:
    """Bring the notes of SOURCE in: an archive or folder that `export` made, a .tar.gz or folder of Markdown, or -.

    An export says to which scope each note belongs; others go to project, and with --scope all go there. Notes that are
    there already are left as they are, so an import that was interrupted can be started again. Exit code 1: a note was
    refused. With --json one object per note.
    """
    if not source.strip():
        raise click.UsageError("SOURCE is empty; name an archive .tar.gz, a folder, or - for stdin")
    place = Place.of(context, directory, None)
    if scope is not None:
        Place.of(context, directory, scope)  # that there is such a scope
    counts: Counter[Fate] = Counter()

    def tell(imported: Imported) -> None:
        counts[imported.fate] += 1
        _tell_imported(imported, as_json=as_json)

    async def run(path: Path) -> None:
        async with place.opened(write=not dry_run) as memory:
            await import_notes(
                path,
                memory.edit,
                place.asked,
                into=ScopeName(scope) if scope is not None else None,
                on_conflict=OnConflict(on_conflict),
                dry_run=dry_run,
                tell=tell,
            )

    with _source(source) as path:
        anyio.run(run, path)
    if not as_json:
        summary = ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate]) or "no notes"
        click.echo(f"{summary}{' (nothing was written: --dry-run)' if dry_run else ''}", err=True)
    return 1 if counts[Fate.REFUSED] else 0


def _refuse_inside(place: Place, target: Path) -> None:
    resolved = target.expanduser().resolve()
    for root in place.roots.roots:
        if resolved.is_relative_to(root.path):
            raise click.UsageError(f"{target} lies in the memory folder {root.path}: name a place outside it")


def _to_archive(place: Place, path: Path, *, force: bool) -> Exported:
    """Write the archive whole or not at all."""
    if path.exists() and not force:
        raise TransferError(where=str(path), problem="the file exists", remedy="name another one, or add --force")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
                with archive_writer(stream) as write:
                    exported = export_notes(place.asked, write)
                stream.flush()
                os.fsync(descriptor)
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise TransferError(
            where=str(path), problem=f"it cannot be written: {error.strerror}", remedy="check the folder and its space"
        ) from error
    return exported


@contextmanager
def _source(source: str) -> Generator[Path]:
    """Lend the path of what is imported; stdin becomes a file first, since an archive is read twice."""
    if source != "-":
        path = Path(source)
        if not path.exists():
            raise TransferError(where=source, problem="there is no such file or folder", remedy="name one that exists")
        if not path.is_dir() and not path.is_file():
            raise TransferError(where=source, problem="it is neither a file nor a folder", remedy="name one of these")
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="recallscope-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as copy:
            stream = sys.stdin.buffer
            while data := stream.read(1 << 20):
                copy.write(data)
                if copy.tell() > MAX_UNPACKED_BYTES:
                    raise TransferError(
                        where="stdin", problem=f"it holds more than {MAX_UNPACKED_BYTES} bytes", remedy="import parts"
                    )
        yield path


def _tell_exported(exported: Exported, target: str, *, as_json: bool, err: bool) -> None:
    if as_json:
        left_out = [{"path": skip.path, "why": skip.why} for skip in exported.left_out]
        print_json({"target": target, "notes": exported.notes, "bytes": exported.size, "left_out": left_out})
        return
    for skip in exported.left_out:
        complain(f"left out {skip.path}: {skip.why}")
    notes = "1 note" if exported.notes == 1 else f"{exported.notes} notes"
    click.echo(
        f"exported {notes}, {exported.size} bytes, to {'stdout' if target == '-' else one_line(target)}", err=err
    )


def _tell_imported(imported: Imported, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": imported.name, "fate": str(imported.fate), "note": imported.note, "why": imported.why})
        return
    where = f" as {imported.note}" if imported.fate is Fate.RENAMED else ""
    why = f": {imported.why}" if imported.why else ""
    print_text(f"{imported.fate} {one_line(imported.name)}{one_line(where) and ' ' + one_line(where)}{one_line(why)}")
