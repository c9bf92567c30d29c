"""Where notes live: base directory, project key, the roots of the scopes, and the safe enumeration of a root."""

import contextlib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recallscope.runtime.errors import MemoryWriteError, StoreUnavailableError
from recallscope.runtime.memory.catalog_schema import SCHEMA
from recallscope.runtime.terms import ScopeName

__all__ = [
    "INDEX_NAME",
    "MAX_DEPTH",
    "TICK_NS",
    "Listing",
    "MemoryRoots",
    "NoteFile",
    "Root",
    "Skipped",
    "catalog_path",
    "confined",
    "default_base",
    "default_cache",
    "is_note_path",
    "list_notes",
    "open_folder",
    "project_key",
    "tenant_key",
]

INDEX_NAME = "MEMORY.md"
"""The generated index of a root; never a note."""

TENANTS = "tenants"
"""The folder below a base directory that holds one folder for each tenant."""

MAX_DEPTH = 16
"""How many folders deep below a root notes may lie."""

TICK_NS = 20_000_000
"""Nanoseconds: two changes of a file within one tick of the file system's clock bear the same time."""


@dataclass(frozen=True, slots=True)
class Root:
    """The directory whose notes belong to a scope; it may not exist yet."""

    scope: ScopeName
    path: Path

    @property
    def is_in_place(self) -> bool:
        """Say whether the path still leads where it did when its links were followed: none of its folders is a link."""
        return os.path.realpath(self.path) == str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoots:
    """The memory that one engine works with. `base` names the catalog that it shares with other projects.

    `team` is a folder that a team shares, in a repository or on a mount; nothing is written there unless a caller names
    that scope. `confine`: no root may lead out of this folder, not by a symbolic link either.
    """

    project: Path | None = None
    team: Path | None = None
    user: Path | None = None
    base: Path | None = None
    confine: Path | None = None

    @classmethod
    def below(
        cls, base: Path, workspace: Path, *, by: str = "git-root", tenant: str | None = None, team: Path | None = None
    ) -> "MemoryRoots":
        """Return the roots of `workspace` below `base`; `by` is `git-root` or `workspace` (see `project_key`).

        With a `tenant` all of them, and the catalog's name, lie below `base/tenants/<tenant_key>`; `team` is one folder
        for everybody and is not for tenants.

        Raises:
            ValueError: an empty tenant, or a tenant with a team.
        """
        confine = None
        if tenant is not None:
            if team is not None:
                raise ValueError("a team's folder would be read by every tenant; give one of the two")
            confine = base = base.expanduser().resolve() / TENANTS / tenant_key(tenant)
        project = base / "projects" / project_key(workspace, by=by) / "memory"
        return cls(project=project, team=team, user=base / "memory", base=base, confine=confine)

    @property
    def roots(self) -> tuple[Root, ...]:
        """Return the roots, absolute and with the links in their own paths followed: project, team, user.

        Raises:
            StoreUnavailableError: a root leads out of `confine`.
        """
        found = ((ScopeName.PROJECT, self.project), (ScopeName.TEAM, self.team), (ScopeName.USER, self.user))
        roots = tuple(Root(scope, path.expanduser().resolve()) for scope, path in found if path is not None)
        for root in roots:
            if self.confine is not None and not root.path.is_relative_to(self.confine):
                raise StoreUnavailableError(
                    f"the memory folder of scope {root.scope} leads to {root.path}, out of {self.confine}, which holds "
                    "all of this tenant; remove the symbolic link"
                )
        return roots


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path below a root that could not be read as a note, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True, order=True)
class NoteFile:
    """A file that may hold a note, as the file system showed it; `relative` uses forward slashes.

    `ctime_ns` tells a change that put size and time back. `racy`: it had changed so shortly before it was looked at
    that the next change may look the same.
    """

    relative: str
    mtime_ns: int
    size: int
    inode: int
    ctime_ns: int = 0
    racy: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, relative: str, status: os.stat_result, *, asked_at_ns: int | None = None) -> "NoteFile":
        """Return what `status`, asked for at `asked_at_ns` or later, says of the file.

        The inode is cut to 63 bits, which is what a database holds.
        """
        inode = status.st_ino & 0x7FFF_FFFF_FFFF_FFFF
        racy = asked_at_ns is None or status.st_ctime_ns > asked_at_ns - TICK_NS
        return cls(relative, status.st_mtime_ns, status.st_size, inode, status.st_ctime_ns, racy)


@dataclass(frozen=True, slots=True)
class Listing:
    """What stands below a root. Below the folders in `unlisted` there may be more."""

    files: Mapping[str, NoteFile]
    skipped: tuple[Skipped, ...] = ()
    unlisted: tuple[str, ...] = field(default=())


def default_base() -> Path:
    """Return the base directory where none is configured: `~/.recallscope`."""
    return Path.home() / ".recallscope"


def default_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the local cache directory of this program: `$XDG_CACHE_HOME/recallscope`, else `~/.cache/recallscope`."""
    configured = Path(environment.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "recallscope"


def catalog_path(roots: MemoryRoots, cache: Path | None = None) -> Path:
    """Return where the catalog over `roots` lies: below `cache` (`default_cache`), named by a hash of the base.

    Its name also holds its version: two versions of this program do not throw away each other's. It is derived, so it
    never lies in a memory directory, never travels with it, and should not lie on a network file system.
    """
    base = roots.base or roots.project or roots.user or default_base()
    name = hashlib.blake2b(os.fsencode(base.expanduser().resolve()), digest_size=8).hexdigest()
    return (cache or default_cache()) / name / f"catalog-{SCHEMA:08x}.sqlite3"


def project_key(workspace: Path, *, by: str = "git-root") -> str:
    """Return the folder name that stands for the project of `workspace`.

    It is the path of the nearest directory with a `.git` entry, file or folder (a worktree and a submodule are projects
    of their own), or of `workspace` itself where there is none or with `by="workspace"`: links followed, other
    characters than letters and digits turned into `-`, and a hash, so that directories that differ in punctuation alone
    do not share their memory.
    """
    path = workspace.expanduser().resolve()
    if by == "git-root":
        path = next((folder for folder in (path, *path.parents) if _has_git(folder)), path)
    readable = re.sub(r"[^0-9A-Za-z]+", "-", str(path)).strip("-")[-80:]
    return f"{readable}-{hashlib.blake2b(os.fsencode(path), digest_size=4).hexdigest()}"


def _has_git(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:  # a parent that may not be looked into has no entry that counts
        return False


def tenant_key(tenant: str) -> str:
    """Return the folder name that stands for `tenant`: lower-case ASCII, safe on every file system.

    Two tenants have the same folder if and only if they are the same text, character by character: the name ends with
    a hash of it (128 bits). What stands before the hash is for people.

    Raises:
        ValueError: the text is empty.
    """
    if not tenant:
        raise ValueError("a tenant has a name; for a memory without tenants give none")
    readable = re.sub(r"[^0-9a-z]+", "-", tenant[:200].lower()).strip("-")[:40].strip("-")
    digest = hashlib.blake2b(tenant.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{readable}-{digest}" if readable else digest


def list_notes(root: Path) -> Listing:
    """List the note files below `root`: `.md` in any folder, hidden names and `MEMORY.md` left out.

    Symbolic links are not followed: one that stays inside the root is passed over (its target is listed under its
    own name), one that leaves it is skipped and named, like pipes, devices and names that are not UTF-8. A root that
    does not exist has no notes.

    Raises:
        OSError: the root exists and cannot be listed.
    """
    files: dict[str, NoteFile] = {}
    skipped: list[Skipped] = []
    unlisted: list[str] = []
    pending = [("", 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            with open_folder(root, folder) as descriptor, os.scandir(descriptor) as entries:
                for entry in entries:
                    if not entry.name.startswith("."):
                        pending.extend((below, depth + 1) for below in _take(entry, folder, root, files, skipped))
        except FileNotFoundError:
            continue
        except OSError as error:
            if not folder:
                raise
            unlisted.append(folder)
            skipped.append(Skipped(folder, f"the folder cannot be listed: {error.strerror}"))
        if depth > MAX_DEPTH and pending:
            deeper = [path for path, level in pending if level > MAX_DEPTH]
            pending = [(path, level) for path, level in pending if level <= MAX_DEPTH]
            skipped.extend(Skipped(path, f"it lies more than {MAX_DEPTH} folders deep") for path in deeper)
    return Listing(files, tuple(sorted(skipped, key=lambda skip: skip.path)), tuple(unlisted))


@contextlib.contextmanager
def open_folder(root: Path, folder: str) -> Generator[int, None, None]:
    """Open `folder` (forward slashes, empty for the root itself) below `root` and never leave the root on the way.

    Every folder is opened from the one before: one that is replaced by a symbolic link meanwhile is an error.

    Raises:
        OSError: a part is missing, no folder, a symbolic link, or `..`.
    """
    parts = folder.split("/") if folder else []
    if not {"", ".", ".."}.isdisjoint(parts):
        raise OSError(errno.EINVAL, "a path below a memory folder has no empty part, no . and no ..")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(root, flags)
    try:
        for part in parts:
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def is_note_path(relative: str) -> bool:
    """Say whether a regular file at `relative` would be listed as a note."""
    *folders, name = relative.split("/")
    if any(part.startswith(".") for part in (*folders, name)) or len(folders) > MAX_DEPTH:
        return False
    return _is_utf8(relative) and _is_note_name(name)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_note_name(name: str) -> bool:
    return name.lower().endswith(".md") and name != INDEX_NAME


def _take(
    entry: "os.DirEntry[str]", folder: str, root: Path, files: dict[str, NoteFile], skipped: list[Skipped]
) -> Iterator[str]:
    """Sort one entry into `files` or `skipped`, or yield it as a folder to list."""
    relative = f"{folder}/{entry.name}" if folder else entry.name
    is_note = _is_note_name(entry.name)
    if not _is_utf8(relative):
        if is_note:
            skipped.append(Skipped(os.fsencode(relative).decode(errors="backslashreplace"), "its name is not UTF-8"))
        return
    try:
        if entry.is_symlink():
            if _leaves(root / relative, root):
                skipped.append(Skipped(relative, "it is a symbolic link that leaves the memory folder"))
        elif entry.is_dir(follow_symlinks=False):
            yield relative
        elif is_note:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                files[relative] = NoteFile.of(relative, status)
            else:
                skipped.append(Skipped(relative, "it is no regular file"))
    except FileNotFoundError:
        return
    except OSError as error:
        skipped.append(Skipped(relative, f"it cannot be looked at: {error.strerror}"))


def _leaves(link: Path, root: Path) -> bool:
    try:
        return not link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a loop of links
        return True


def confined(root: Path, relative: str) -> Path:
    """Return the path of the note `relative` below `root`, made sure that a write there stays below it.

    Raises:
        MemoryWriteError: absolute, with `..`, hidden, no `.md`, the index itself, or through a symbolic link; or one of
            the root's own folders was replaced by a link.
    """
    problem = _problem_of(relative)
    if problem is not None:
        raise MemoryWriteError(path=relative, problem=problem, remedy="give a path such as project/some-fact.md")
    if os.path.realpath(root) != str(root):
        raise MemoryWriteError(
            path=relative,
            problem=f"a folder above {root.name} was replaced by a symbolic link since memory was opened",
            remedy="open memory again",
        )
    path = root
    for part in relative.split("/"):
        path /= part
        if path.is_symlink():
            raise MemoryWriteError(
                path=relative,
                problem=f"{path.name} is a symbolic link, and a write through it could leave the memory folder",
                remedy="write to the folder that it points to, or replace the link",
            )
    return path


def _problem_of(relative: str) -> str | None:
    """Say why no note may be written at `relative`, whatever stands there."""
    parts = relative.split("/")
    problem = None
    if not relative or relative.startswith("/") or "\\" in relative or "\0" in relative:
        problem = "it is no path below the memory folder with forward slashes"
    elif not _is_utf8(relative):
        problem = "its name is not UTF-8, and such a file is never read as a note"
    elif any(part in {"", ".", ".."} for part in parts):
        problem = "it holds an empty, `.` or `..` folder"
    elif any(part.startswith(".") for part in parts):
        problem = "it has a hidden name, which is never read as a note"
    elif not parts[-1].lower().endswith(".md") or parts[-1] == INDEX_NAME:
        problem = f"a note's file ends with .md and is not {INDEX_NAME}"
    elif any(len(part.encode(errors="replace")) > 200 for part in parts) or len(parts) > MAX_DEPTH:  # noqa: PLR2004 - file systems allow 255
        problem = "its name is too long or too deep"
    return problem
