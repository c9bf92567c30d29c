"""How the configuration is put together from its sources."""

import difflib
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from recallscope.runtime.config.kinds import SECRET, Reading, Secret, WrongValueError
from recallscope.runtime.config.masking import MASK, is_credential, tell
from recallscope.runtime.config.settings import (
    KEYS,
    SECTIONS,
    AgentSettings,
    Key,
    MemorySettings,
    ModelSettings,
    RecallSettings,
    SessionSettings,
    TelemetrySettings,
)
from recallscope.runtime.errors import ConfigError, ConfigFileError

__all__ = ["FILE_NAME", "Entry", "Flag", "Origin", "Settings", "Source", "load"]

FILE_NAME = "recallscope.toml"
LARGEST_FILE = 1024 * 1024
_PREFIX = "RECALLSCOPE_"
_LIBRARYS_HOST = ("https", "api.openai.com")
_CREDENTIALS = (
    ("model.base_url", "model.api_key"),
    ("model.small_base_url", "model.small_api_key"),
    ("model.embedding_base_url", "model.embedding_api_key"),
)


@unique
class Origin(StrEnum):
    """The kinds of source, by rising strength; `KEY` is another key that stands in for one that is not set."""

    DEFAULT = "default"
    KEY = "key"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from; `name` is the file, the variable, the flag or the other key."""

    origin: Origin
    name: str = ""

    def __str__(self) -> str:
        match self.origin:
            case Origin.DEFAULT:
                return "default"
            case Origin.KEY | Origin.FILE:
                return self.name
            case Origin.ENVIRONMENT:
                return f"environment {self.name}"
            case Origin.FLAG:
                return f"flag {self.name}"


@dataclass(frozen=True, slots=True)
class Flag:
    """What a flag of the command line sets: `value` as text or of the key's own type, `option` as a person types it."""

    option: str
    value: object


@dataclass(frozen=True, slots=True)
class Entry:
    """One key as it is in force; `value` is fit for printing and for JSON: secrets are masked."""

    key: str
    value: str | float | bool | None
    source: Source
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration in force; `file` is the one that was read, `sources` says where each key came from."""

    model: ModelSettings
    memory: MemorySettings
    recall: RecallSettings
    agent: AgentSettings
    session: SessionSettings
    telemetry: TelemetrySettings
    file: Path | None
    sources: Mapping[str, Source]

    def source(self, key: str) -> str:
        """Say where the value of `key` (`recall.policy`) came from, for an error about it."""
        return str(self.sources[key])

    def entries(self) -> Iterator[Entry]:
        """Yield every key in the order of the sections, secrets masked."""
        for key in KEYS.values():
            section, _, name = key.name.partition(".")
            value = getattr(getattr(self, section), name)
            yield Entry(key.name, _shown(value), self.sources[key.name], key.doc)


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    source: Source
    base: Path


def load(
    *,
    environ: Mapping[str, str],
    cwd: Path,
    home: Path,
    file: Path | None = None,
    flags: Mapping[str, Flag] | None = None,
) -> Settings:
    """Put the configuration together from defaults, one file, `environ` and `flags`, each stronger than the one before.

    The file is `file`, else `recallscope.toml` in `cwd` or, below a folder with a `.git` entry, in the nearest folder
    up to that one, else in the user's configuration folder. Relative paths in it are relative to its folder, others to
    `cwd`. In `flags` the keys are those of `KEYS`.

    The file of the project came with whatever lies there, and nobody named it: a credential of the environment or a
    flag does not go to an address in it, unless that is on this machine or on a host that a stronger source names.

    Raises:
        ConfigError: an unknown key, a wrong value, a file that cannot be read, a credential for a file's address, or a
            `home` that is not absolute.
    """
    if not home.is_absolute():  # folders would be made wherever a command is started
        raise ConfigError(key="HOME", value=str(home), allowed="it must be an absolute path", source="the environment")
    user = _user_file(environ, home)
    places = (*(folder / FILE_NAME for folder in _project_folders(cwd)), user)
    found = cwd / file if file is not None else next((path for path in places if _is_there(path)), None)
    given: dict[str, _Given] = {}
    if found is not None:
        given |= _from_file(found)
    given |= _from_environment(environ, cwd)
    given |= _from_flags(flags or {}, cwd)
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for name, key in KEYS.items():
        one = given.get(name) or _Given(_default(key, environ), Source(Origin.DEFAULT), cwd)
        values[name] = _read(key, one, home)
        sources[name] = one.source
    _fall_back(values, sources)
    if file is None and found is not None and found != user:
        named = found.name if found.parent == cwd else str(found)
        _keep_credentials_from(found, values, sources, option=f"--config {named}")
    sections = {
        section: settings(**{name.partition(".")[2]: value for name, value in values.items() if _in(section, name)})
        for section, settings in SECTIONS.items()
    }
    return Settings(file=found, sources=sources, **sections)


def _project_folders(cwd: Path) -> Sequence[Path]:
    """Return `cwd` and the folders above it up to the nearest with a `.git` entry; `cwd` alone where there is none."""
    folders = (cwd, *cwd.parents)
    top = next((number for number, folder in enumerate(folders) if _has_git(folder)), 0)
    return folders[: top + 1]


def _has_git(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:  # a folder that may not be looked into has no entry that counts
        return False


def _user_file(environ: Mapping[str, str], home: Path) -> Path:
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else home / ".config") / "recallscope" / FILE_NAME


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # reading it will say what is wrong with it
    return True


def _from_file(path: Path) -> Iterator[tuple[str, _Given]]:
    source = Source(Origin.FILE, str(path))
    for section, keys in _tables(path).items():
        if section not in SECTIONS:
            raise _unknown(section, keys, source, tuple(SECTIONS), what="section")
        if not isinstance(keys, dict):
            told = MASK if is_credential(section) else tell(keys)
            raise ConfigError(key=section, value=told, allowed=f"a table, as in [{section}]", source=str(source))
        for name, value in cast("dict[str, object]", keys).items():
            key = f"{section}.{name}"
            if key not in KEYS:
                raise _unknown(key, value, source, tuple(KEYS), what="key")
            yield key, _Given(value, source, path.parent)


def _tables(path: Path) -> dict[str, object]:
    try:
        mode = path.stat().st_mode  # before it is opened: to open a pipe would wait for whoever writes to it
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise _unreadable(path, "is a pipe or a device")
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise _unreadable(path, f"has more than {LARGEST_FILE} bytes")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _unreadable(path, "is no text in UTF-8", _CORRECT) from None
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, f"is no TOML: {_placed(str(error))}", _CORRECT) from None
    except ValueError:
        raise _unreadable(path, "is no TOML: a number or a date in it is too large", _CORRECT) from None
    except RecursionError:
        raise _unreadable(path, "is no TOML: it is nested too deeply", _CORRECT) from None


_CORRECT = "correct it, or name another with --config"
_PLACE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")


def _placed(problem: str) -> str:
    """Put the place of a parser's complaint before it: `line 3, column 8: expected ']' …`."""
    found = _PLACE.fullmatch(problem)
    if found is None:  # at the end of the document, and whatever else has no number
        return problem[:1].lower() + problem[1:]
    what, line, column = found.groups()
    return f"line {line}, column {column}: {what[:1].lower()}{what[1:]}"


def _unreadable(path: Path, problem: str, remedy: str = "name a file of TOML with --config") -> ConfigError:
    return ConfigFileError(path=str(path), problem=problem, remedy=remedy)


def _from_environment(environ: Mapping[str, str], cwd: Path) -> Iterator[tuple[str, _Given]]:
    variables = {key.variable: key for key in KEYS.values()}
    for key in KEYS.values():
        # For the standard variables an empty value is as good as none; that is how their specifications have it.
        if key.standard is not None and environ.get(key.standard):
            yield key.name, _Given(environ[key.standard], Source(Origin.ENVIRONMENT, key.standard), cwd)
    for variable in sorted(environ):
        if variable.startswith(_PREFIX):
            source = Source(Origin.ENVIRONMENT, variable)
            if variable not in variables:
                raise _unknown(variable, environ[variable], source, tuple(variables), what="variable")
            yield variables[variable].name, _Given(environ[variable], source, cwd)


def _from_flags(flags: Mapping[str, Flag], cwd: Path) -> Iterator[tuple[str, _Given]]:
    for name, flag in flags.items():
        source = Source(Origin.FLAG, flag.option)
        if name not in KEYS:
            raise _unknown(name, flag.value, source, tuple(KEYS), what="key")
        yield name, _Given(flag.value, source, cwd)


def _default(key: Key, environ: Mapping[str, str]) -> str:
    return key.default if isinstance(key.default, str) else key.default(environ)


def _read(key: Key, given: _Given, home: Path) -> object:
    reading = Reading(from_text=given.source.origin is not Origin.FILE, base=given.base, home=home)
    try:
        return key.kind.read(given.value, reading)
    except WrongValueError:
        raise ConfigError(
            key=key.name,
            value=MASK if key.kind is SECRET else tell(given.value),
            allowed=f"it must be {key.kind.allowed}",
            source=str(given.source),
        ) from None


def _unknown(key: str, value: object, source: Source, known: tuple[str, ...], *, what: str) -> ConfigError:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "`recallscope config` lists them"
    secret = is_credential(key) or any(_names_secret(name) for name in near)
    return ConfigError(
        key=key, value=MASK if secret else tell(value), allowed=f"no such {what}; {hint}", source=str(source)
    )


def _names_secret(name: str) -> bool:
    return any(key.kind is SECRET and name in {key.name, key.variable} for key in KEYS.values())


def _fall_back(values: dict[str, Any], sources: dict[str, Source]) -> None:
    for url, key in _CREDENTIALS[1:]:
        if values[url] is None:
            values[url] = values["model.base_url"]
            sources[url] = Source(Origin.KEY, "model.base_url")
        same = _host(values[url]) == _host(values["model.base_url"])
        # A credential goes to the host that it was given for and to no other.
        if values[key] is None and same:
            values[key] = values["model.api_key"]
            sources[key] = Source(Origin.KEY, "model.api_key")


def _keep_credentials_from(
    file: Path, values: Mapping[str, Any], sources: Mapping[str, Source], *, option: str
) -> None:
    """Refuse to send a credential of the environment or a flag to an address that only `file` names.

    `option` is how a person would name the file.
    """
    named = {_host(values[url]) for url, _ in _CREDENTIALS if _first(url, sources).origin is not Origin.FILE}
    named.add(_LIBRARYS_HOST)
    for url, key in _CREDENTIALS:
        address, credential = _first(url, sources), _first(key, sources)
        if values[key] is None or credential.origin not in {Origin.ENVIRONMENT, Origin.FLAG}:
            continue
        if address.origin is Origin.FILE and _host(values[url]) not in named and not _is_loopback(values[url]):
            own = sources[url].name if sources[url].origin is Origin.KEY else url
            raise ConfigError(
                key=own,
                value=tell(values[url]),
                allowed=(
                    f"{key} comes from {credential} and is not sent to an address that only a file of the project "
                    "names; if you trust it, give the address yourself "
                    f"({KEYS[own].standard or KEYS[own].variable}, or {option}), "
                    "else take it out of the file"
                ),
                source=str(file),
            )


def _first(name: str, sources: Mapping[str, Source]) -> Source:
    """Return where the value of a key came from, its stand-in's where it has none of its own."""
    source = sources[name]
    return sources[source.name] if source.origin is Origin.KEY else source


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host(url: str | None) -> tuple[str, str] | None:
    parts = urlsplit(url or "")
    return (parts.scheme, parts.netloc.lower()) if url else None


def _in(section: str, name: str) -> bool:
    return name.startswith(f"{section}.")


def _shown(value: object) -> str | float | bool | None:
    match value:
        case None | bool() | int() | float():
            return value
        case Secret():
            return MASK
        case _:
            return str(value)
