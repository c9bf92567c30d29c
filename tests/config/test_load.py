"""The configuration is put together from its sources by strength, and every mistake names its source."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.config import Flag, Metrics, Origin, Secret, Selector, Settings, Source, load
from recallscope.runtime.config.masking import mask_text
from recallscope.runtime.config.settings import KEYS
from recallscope.runtime.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give an empty home folder."""
    return _folder(tmp_path / "home")


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """Give an empty working folder."""
    return _folder(tmp_path / "work")


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _load(cwd: Path, home: Path, environ: Mapping[str, str] | None = None, **flags: Flag) -> Settings:
    named = {key.replace("__", "."): flag for key, flag in flags.items()}
    return load(environ=environ or {}, cwd=cwd, home=home, flags=named)


def _error(cwd: Path, home: Path, environ: Mapping[str, str] | None = None, **flags: Flag) -> str:
    with pytest.raises(ConfigError) as caught:
        _load(cwd, home, environ, **flags)
    return str(caught.value)


def test_defaults(cwd: Path, home: Path) -> None:
    """With nothing given every key has its default, and says so."""
    settings = _load(cwd, home)

    assert settings.file is None
    assert (settings.model.name, settings.model.api_key, settings.model.attempts) == (None, None, 4)
    assert (settings.recall.policy, settings.recall.ceiling_seconds, settings.recall.budget_notes) == ("tiered", 0.1, 5)
    assert settings.recall.selector is Selector.MODEL
    assert settings.memory.base_dir == home / ".recallscope"
    assert settings.memory.cache_dir == home / ".cache" / "recallscope"
    assert settings.telemetry.journal_dir == home / ".local" / "state" / "recallscope" / "journal"
    assert settings.session.workspace == cwd
    assert (settings.telemetry.metrics, settings.telemetry.metrics_port) == (Metrics.AUTO, 9464)
    derived = {f"model.{which}_{key}" for which in ("small", "embedding") for key in ("base_url", "api_key")}
    assert {key for key, source in settings.sources.items() if source != Source(Origin.DEFAULT)} == derived


def test_each_source_is_stronger_than_the_one_before(cwd: Path, home: Path) -> None:
    """A flag beats the environment, the environment beats the file, the file beats the default."""
    file = _write(cwd / "recallscope.toml", "[model]\nattempts = 2\ntotal_seconds = 30\nname = 'from-file'\n")
    environ = {"RECALLSCOPE_MODEL_TOTAL_SECONDS": "40", "RECALLSCOPE_MODEL_NAME": "from-environment"}

    settings = _load(cwd, home, environ, model__name=Flag("--model", "from-flag"))

    assert (settings.model.attempts, settings.model.total_seconds, settings.model.name) == (2, 40.0, "from-flag")
    assert settings.source("model.attempts") == str(file)
    assert settings.source("model.total_seconds") == "environment RECALLSCOPE_MODEL_TOTAL_SECONDS"
    assert settings.source("model.name") == "flag --model"
    assert settings.source("model.stream") == "default"


def test_the_file_of_the_working_folder_goes_before_that_of_the_user(cwd: Path, home: Path) -> None:
    """One file is read: the working folder's, else the user's."""
    user = _write(home / ".config" / "recallscope" / "recallscope.toml", "[agent]\nname = 'user'\n")
    before = _load(cwd, home)
    here = _write(cwd / "recallscope.toml", "[agent]\nmax_sends = 7\n")
    after = _load(cwd, home)

    assert (before.file, before.agent.name) == (user, "user")
    assert (after.file, after.agent.name, after.agent.max_sends) == (here, "recallscope", 7)


def test_the_file_is_looked_for_up_to_the_root_of_the_project(cwd: Path, home: Path) -> None:
    """The nearest one counts; above the folder with a `.git` entry, and where there is none, nothing is looked for."""
    below = _folder(cwd / "a/b")
    above = _write(cwd / "recallscope.toml", "[model]\nname = 'above'\n[memory]\nproject_dir = 'notes'")
    assert _load(below, home).file is None
    (cwd / ".git").touch()
    settings = _load(below, home)
    assert (settings.file, settings.memory.project_dir) == (above, cwd / "notes")
    near = _write(cwd / "a/recallscope.toml", "[model]\nname = 'near'")
    assert _load(below, home).file == near
    _folder(below / ".git")
    assert _load(below, home).file is None


def test_a_key_is_not_sent_where_a_file_above_says(cwd: Path, home: Path) -> None:
    """Such a file came with the project, as one in the working folder does."""
    _write(cwd / "recallscope.toml", "[model]\nbase_url = 'https://elsewhere.example/v1'")
    (cwd / ".git").touch()

    message = _error(_folder(cwd / "a"), home, {"OPENAI_API_KEY": "key"})
    assert "an address that only a file of the project names" in message
    assert f"--config {cwd}/recallscope.toml" in message


def test_xdg_folders_are_respected_when_absolute(cwd: Path, home: Path, tmp_path: Path) -> None:
    """The base-directory variables move configuration, cache and journal; a relative one is ignored."""
    _write(tmp_path / "xdg" / "recallscope" / "recallscope.toml", "[agent]\nname = 'xdg'\n")

    settings = _load(
        cwd,
        home,
        {
            "XDG_CONFIG_HOME": str(tmp_path / "xdg"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "XDG_STATE_HOME": "relative",
        },
    )

    assert settings.agent.name == "xdg"
    assert settings.memory.cache_dir == tmp_path / "cache" / "recallscope"
    assert settings.telemetry.journal_dir == home / ".local" / "state" / "recallscope" / "journal"


def test_a_relative_home_is_refused(cwd: Path) -> None:
    """Memory and journal would else be made below whichever folder a command is started in."""
    assert _error(cwd, Path("somewhere")) == (
        "HOME = 'somewhere' (from the environment) is not allowed: it must be an absolute path"
    )
    assert list(cwd.iterdir()) == []


def test_a_named_file_replaces_the_others(cwd: Path, home: Path, tmp_path: Path) -> None:
    """`--config FILE` is read alone, relative to the working folder."""
    _write(cwd / "recallscope.toml", "[agent]\nname = 'here'\n")
    _write(tmp_path / "other.toml", "[agent]\nmax_sends = 3\n")

    settings = load(environ={}, cwd=cwd, home=home, file=Path("../other.toml"))

    assert (settings.agent.name, settings.agent.max_sends) == ("recallscope", 3)


def test_paths_are_relative_to_whoever_says_them(cwd: Path, home: Path, tmp_path: Path) -> None:
    """In a file a path is relative to the file's folder, elsewhere to the working folder; `~` is the home folder."""
    file = _write(tmp_path / "etc" / "r.toml", "[memory]\nbase_dir = 'notes'\nproject_dir = '~/p'\n")

    settings = load(
        environ={"RECALLSCOPE_MEMORY_CACHE_DIR": "cache"},
        cwd=cwd,
        home=home,
        file=file,
        flags={"session.workspace": Flag("--workspace", Path("sub"))},
    )

    assert settings.memory.base_dir == tmp_path / "etc" / "notes"
    assert settings.memory.project_dir == home / "p"
    assert settings.memory.cache_dir == cwd / "cache"
    assert settings.session.workspace == cwd / "sub"


def test_standard_variables(cwd: Path, home: Path) -> None:
    """The variables of other programs are read; an empty one is none, and our own one goes before it."""
    standard = {
        "OPENAI_API_KEY": "standard",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1/",
        "OTEL_EXPORTER_PROMETHEUS_PORT": "",
    }

    plain = _load(cwd, home, standard)
    own = _load(cwd, home, standard | {"RECALLSCOPE_MODEL_API_KEY": "own"})

    assert (plain.model.api_key, plain.model.base_url) == (Secret("standard"), "http://127.0.0.1:1/v1")
    assert plain.telemetry.metrics_port == 9464
    assert plain.source("model.api_key") == "environment OPENAI_API_KEY"
    assert own.model.api_key == Secret("own")


def test_an_empty_variable_of_our_own_takes_a_value_away(cwd: Path, home: Path) -> None:
    """`RECALLSCOPE_MODEL_SMALL=` switches off the small model that the file names."""
    _write(cwd / "recallscope.toml", "[model]\nsmall = 'mini'\n")

    assert _load(cwd, home).model.small == "mini"
    assert _load(cwd, home, {"RECALLSCOPE_MODEL_SMALL": ""}).model.small is None


def test_the_small_model_falls_back_on_the_main_one(cwd: Path, home: Path) -> None:
    """Address and credential of the small model are the main one's when not given."""
    settings = _load(cwd, home, {"RECALLSCOPE_MODEL_BASE_URL": "http://h:1/v1", "RECALLSCOPE_MODEL_API_KEY": "secret"})

    assert (settings.model.small_base_url, settings.model.small_api_key) == ("http://h:1/v1", Secret("secret"))
    assert settings.sources["model.small_base_url"] == Source(Origin.KEY, "model.base_url")
    assert settings.sources["model.small_api_key"] == Source(Origin.KEY, "model.api_key")
    assert (settings.model.embedding_base_url, settings.model.embedding_api_key) == ("http://h:1/v1", Secret("secret"))


ELSEWHERE = "[model]\nbase_url = 'https://models.example/v1'\n"


def test_a_credential_of_the_environment_is_not_sent_where_a_found_file_says(cwd: Path, home: Path) -> None:
    """A file that came with a repository cannot collect the key: the error names both sources and the ways out."""
    _write(cwd / "recallscope.toml", ELSEWHERE)
    message = _error(cwd, home, {"OPENAI_API_KEY": SECRET})
    assert SECRET not in message
    assert message == (
        f"model.base_url = 'https://models.example/v1' (from {cwd}/recallscope.toml) is not allowed: "
        "model.api_key comes from environment OPENAI_API_KEY and is not sent to an address that only a file of the "
        "project names; if you trust it, give the address yourself (OPENAI_BASE_URL, or --config "
        "recallscope.toml), else take it out of the file"
    )
    assert "flag --set" in _error(cwd, home, model__api_key=Flag("--set", "k"))


@pytest.mark.parametrize("key", ["small", "embedding"])
@pytest.mark.parametrize("credential", ["OPENAI_API_KEY", "RECALLSCOPE_MODEL_{}_API_KEY"])
def test_neither_is_the_key_of_the_other_models(cwd: Path, home: Path, key: str, credential: str) -> None:
    """The addresses of the small and of the embedding model are guarded like the main one's."""
    text = f"[model]\n{key}_base_url = 'https://models.example/v1'\n"
    environ = {credential.format(key.upper()): "k", "OPENAI_BASE_URL": "https://own.example/v1"}
    _write(cwd / "recallscope.toml", text)
    if credential == "OPENAI_API_KEY":  # it belongs to another host and does not go there in the first place
        assert getattr(_load(cwd, home, environ).model, f"{key}_api_key") is None
    else:
        assert f"RECALLSCOPE_MODEL_{key.upper()}_BASE_URL" in _error(cwd, home, environ)
    _write(cwd / "recallscope.toml", ELSEWHERE)
    del environ["OPENAI_BASE_URL"]
    assert "OPENAI_BASE_URL, or --config" in _error(cwd, home, environ)


def test_an_address_that_the_person_gave_gets_the_key(cwd: Path, home: Path) -> None:
    """The environment, a flag, the user's own file and a file that was named are the person's; so is its own key."""
    key = {"OPENAI_API_KEY": "k"}
    user = home / ".config" / "recallscope" / "recallscope.toml"
    _write(user, ELSEWHERE)
    assert _load(cwd, home, key).model.api_key == Secret("k")
    assert _load(user.parent, home, key).model.api_key == Secret("k")
    file = _write(cwd / "recallscope.toml", ELSEWHERE)
    assert load(environ=key, cwd=cwd, home=home, file=Path(file.name)).model.api_key == Secret("k")
    url = "https://models.example/other"
    assert _load(cwd, home, key | {"OPENAI_BASE_URL": url}).model.base_url == url
    assert _load(cwd, home, key, model__base_url=Flag("--set", url)).model.base_url == url
    _write(file, ELSEWHERE + "api_key = 'its-own'\n")
    assert _load(cwd, home).model.api_key == Secret("its-own")
    _write(file, "[model]\nbase_url = 'https://api.openai.com/v1'\n")
    assert _load(cwd, home, key).model.api_key == Secret("k")
    _write(file, "[model]\nsmall_base_url = 'https://models.example/small'\n")
    assert _load(cwd, home, key | {"OPENAI_BASE_URL": url}).model.small_api_key == Secret("k")


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1:8000", "127.9.9.9", "[::1]:1", "localhost:1")),
        *((host, False) for host in ("localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0:1", "10.0.0.1")),
    ],
)
def test_a_server_on_this_machine_gets_the_key(cwd: Path, home: Path, host: str, local: bool) -> None:
    """The address of the README's example works as it stands; what only looks like this machine does not."""
    _write(cwd / "recallscope.toml", f"[model]\nbase_url = 'http://{host}/v1'\n")
    if local:
        assert _load(cwd, home, {"OPENAI_API_KEY": "k"}).model.api_key == Secret("k")
    else:
        assert "not sent" in _error(cwd, home, {"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize(
    ("small", "expected"), [("http://h:1/other", Secret("secret")), ("http://elsewhere:1/v1", None)]
)
def test_a_credential_goes_to_no_other_host(cwd: Path, home: Path, small: str, expected: Secret | None) -> None:
    """The main model's credential is the small one's only when the same host serves both."""
    environ = {
        "RECALLSCOPE_MODEL_BASE_URL": "http://h:1/v1",
        "RECALLSCOPE_MODEL_API_KEY": "secret",
        "RECALLSCOPE_MODEL_SMALL_BASE_URL": small,
        "RECALLSCOPE_MODEL_EMBEDDING_BASE_URL": small,
    }
    model = _load(cwd, home, environ).model

    assert (model.small_api_key, model.embedding_api_key) == (expected, expected)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("model.stream", "OFF", False),
        ("model.stream", "1", True),
        ("model.max_tokens", "0", None),
        ("model.max_tokens", "512", 512),
        ("recall.ceiling_seconds", "0", 0.0),
        ("recall.ceiling_seconds", "1e-1", 0.1),
        ("recall.selector", "none", Selector.NONE),
        ("telemetry.metrics", "on", Metrics.ON),
        ("telemetry.metrics_host", "::1", "::1"),
        ("model.base_url", "https://[::1]:8443/v1", "https://[::1]:8443/v1"),
        ("agent.name", "Ända", "Ända"),
    ],
)
def test_text_is_read_by_the_kind_of_its_key(cwd: Path, home: Path, key: str, text: str, value: object) -> None:
    """A variable's text becomes a value of the key's kind."""
    settings = _load(cwd, home, {KEYS[key].variable: text})

    section, _, name = key.partition(".")
    assert getattr(getattr(settings, section), name) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("model.name", " spaced"),
        ("model.name", "two\nlines"),
        ("model.attempts", "0"),
        ("model.attempts", "2.5"),
        ("model.attempts", "9" * 5000),
        ("model.stream", "maybe"),
        ("model.stream", ""),
        ("model.base_url", "127.0.0.1:8000"),
        ("model.base_url", "ftp://h/"),
        ("model.base_url", "http://h:99999/"),
        ("model.base_url", "http://[::1/"),
        ("model.base_url", "http://h/v1?q=1"),
        ("model.total_seconds", "nan"),
        ("model.total_seconds", "inf"),
        ("model.total_seconds", "-1"),
        ("model.total_seconds", "soon"),
        ("recall.selector", "both"),
        ("recall.policy", ""),
        ("agent.system_prompt_file", "nowhere.md"),
        ("memory.base_dir", ""),
        ("telemetry.metrics_host", "http://h"),
        ("telemetry.metrics_port", "65536"),
    ],
)
def test_a_wrong_text_names_key_source_and_what_is_allowed(cwd: Path, home: Path, key: str, text: str) -> None:
    """A wrong value is refused by an error that says which key, from where, and what is allowed."""
    told = _error(cwd, home, {KEYS[key].variable: text})

    assert told.startswith(f"{key} = ")
    assert f"(from environment {KEYS[key].variable})" in told
    assert told.endswith(f"it must be {KEYS[key].kind.allowed}")
    assert len(told) < 600


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("[model]\nattempts = '3'", "model.attempts"),
        ("[model]\nattempts = true", "model.attempts"),
        ("[model]\nattempts = 3.0", "model.attempts"),
        ("[model]\nstream = 1", "model.stream"),
        ("[model]\nstream = 'true'", "model.stream"),
        ("[model]\nname = 3", "model.name"),
        ("[model]\nname = ['a']", "model.name"),
        ("[recall]\nceiling_seconds = '0.1'", "recall.ceiling_seconds"),
        ("[recall]\nceiling_seconds = nan", "recall.ceiling_seconds"),
        ("[telemetry]\nmetrics = true", "telemetry.metrics"),
        ("[memory]\nbase_dir = 1979-05-27", "memory.base_dir"),
        ('[memory]\nbase_dir = "a\\u0000b"', "memory.base_dir"),
    ],
)
def test_a_file_is_typed(cwd: Path, home: Path, line: str, key: str) -> None:
    """In a file a number is a number and a switch a switch: text that looks like one is refused."""
    file = _write(cwd / "recallscope.toml", line)

    told = _error(cwd, home)

    assert told.startswith(f"{key} = ")
    assert f"(from {file})" in told


def test_whole_seconds_in_a_file_are_seconds(cwd: Path, home: Path) -> None:
    """A whole number is a number of seconds, too."""
    _write(cwd / "recallscope.toml", "[recall]\nceiling_seconds = 1\n")

    assert _load(cwd, home).recall.ceiling_seconds == 1.0


def test_an_unknown_key_is_refused_with_a_guess(cwd: Path, home: Path) -> None:
    """A misspelt key names the one that was probably meant, wherever it stands."""
    file = _write(cwd / "recallscope.toml", "[recall]\npolcy = 'tiered'\n")
    in_file = _error(cwd, home)
    file.unlink()

    assert in_file == (
        f"recall.polcy = 'tiered' (from {file}) is not allowed: no such key; did you mean recall.policy?"
    )
    assert _error(cwd, home, {"RECALLSCOPE_RECAL_POLICY": "off"}) == (
        "RECALLSCOPE_RECAL_POLICY = 'off' (from environment RECALLSCOPE_RECAL_POLICY) is not allowed: "
        "no such variable; did you mean RECALLSCOPE_RECALL_POLICY?"
    )
    assert "did you mean agent.name?" in _error(cwd, home, agent__nam=Flag("--set", "x"))


def test_an_unknown_section_and_a_section_that_is_none(cwd: Path, home: Path) -> None:
    """A misspelt section is guessed at, and a section that is a value is refused."""
    _write(cwd / "recallscope.toml", "[recal]\npolicy = 'off'\n")
    unknown = _error(cwd, home)
    _write(cwd / "recallscope.toml", "recall = 'off'\n")

    assert "no such section; did you mean recall?" in unknown
    assert _error(cwd, home).endswith("is not allowed: a table, as in [recall]")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            b"[agent]\n[model\n",
            "is no TOML: line 2, column 7: expected ']' at the end of a table declaration; correct it",
        ),
        (b"a = [1,\n", "is no TOML: invalid value (at end of document); correct it"),
        (b"a = \xff\n", "is no text in UTF-8; correct it, or name another with --config"),
        (b"# " + b"x" * 1024 * 1024, "has more than 1048576 bytes; name a file of TOML with --config"),
        (b"a = " + b"[" * 5000, "is no TOML: it is nested too deeply; correct it"),
    ],
)
def test_a_file_that_cannot_be_read(cwd: Path, home: Path, content: bytes, told: str) -> None:
    """A file that is no TOML, no UTF-8 or too large is an error that names it."""
    file = cwd / "recallscope.toml"
    file.write_bytes(content)

    error = _error(cwd, home)

    assert error.startswith(f"the configuration file {file} {told}")


def test_a_named_file_that_is_missing_or_a_folder(cwd: Path, home: Path) -> None:
    """A file that was asked for by name must be there."""
    told: list[str] = []
    for name in ("missing.toml", "."):
        with pytest.raises(ConfigError) as caught:
            load(environ={}, cwd=cwd, home=home, file=Path(name))
        told.append(str(caught.value))

    assert "No such file or directory" in told[0]
    assert "Is a directory" in told[1]


def test_a_byte_order_mark_is_no_mistake(cwd: Path, home: Path) -> None:
    """A file saved with a byte order mark is read."""
    (cwd / "recallscope.toml").write_bytes(b"\xef\xbb\xbf[agent]\nname = 'bom'\r\n")

    assert _load(cwd, home).agent.name == "bom"


SECRET = "sk-9f8e7d"  # noqa: S105 - made up for these tests


def test_credentials_never_show(cwd: Path, home: Path) -> None:
    """A credential is in no repr, no entry for printing and no error, even when its key or its value is wrong."""
    settings = _load(cwd, home, {"OPENAI_API_KEY": SECRET})
    shown = [
        repr(settings),
        str(settings.model.api_key),
        str(list(settings.entries())),
        _error(cwd, home, {"OPENAI_API_KEY": f"{SECRET} x"}),
        _error(cwd, home, {"RECALLSCOPE_MODEL_API_KYE": SECRET, "RECALLSCOPE_MODEL_APIKEY": SECRET}),
        _error(cwd, home, {"OPENAI_BASE_URL": f"http://user:{SECRET}@h/v1"}),
        _error(cwd, home, {"OPENAI_BASE_URL": f"http://h/v1?key={SECRET}"}),
    ]

    assert settings.model.api_key is not None
    assert settings.model.api_key.value == SECRET
    assert [text for text in shown if SECRET in text] == []


@pytest.mark.parametrize(
    "text",
    [
        f'[openai]\napi_key = "{SECRET}"',
        f'[openai]\nname = ["{SECRET}"]',
        f'[[model]]\napi_key = "{SECRET}"',
        f'api_key = "{SECRET}"',
        f'model = "Bearer {SECRET}"',
        f'[model]\nbase_url = {{api_key = "{SECRET}"}}',
        f'[model]\nbase_url = "user:{SECRET}@h"',
        f'[model]\nbase_url = "http://u:p/{SECRET}@h"',
        f'[model]\nbase_url = "http://h/#{SECRET}"',
        f'[model]\nheaders = {{authorization = "Bearer {SECRET}"}}',
        f'[model]\nauthorization = "Bearer {SECRET}"',
        f'[model]\napi_kye = "{SECRET}"',
        f'[model]\nextra = "token={SECRET}, x=1"',
        f'[memory]\nbase_dir = [{{password = "{SECRET}"}}]',
        f'[agent]\nname = "\\nauthorization: Bearer {SECRET}"',
    ],
)
def test_no_mistake_in_a_file_gives_a_credential_away(cwd: Path, home: Path, text: str) -> None:
    """Whatever is wrong with a file, the error about it holds no credential: tables and lists are told by kind."""
    _write(cwd / "recallscope.toml", text)

    assert SECRET not in _error(cwd, home)


def test_a_table_is_told_by_its_kind(cwd: Path, home: Path) -> None:
    """An error shows of a table or a list only that it is one."""
    file = _write(cwd / "recallscope.toml", "[model]\nname = {a = 1}\n")
    table = _error(cwd, home)
    _write(file, "[model]\nname = [1]\n")

    assert table.startswith(f"model.name = a table (from {file}) is not allowed")
    assert _error(cwd, home).startswith(f"model.name = a list (from {file}) is not allowed")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://u:p/w@h/v1", "http://********@h/v1"),
        ("http://h/?token=X&b=Y", "http://h/?********"),
        ("h/v1?key=X", "h/v1?********"),
        ("u:p@h", "********@h"),
        ("a=1,api-token=X,b=2", "a=1,api-token=********,b=2"),
        ("Authorization: Bearer X", "Authorization: ******** ********"),
        ("http://h:4318/v1", "http://h:4318/v1"),
        ("why?", "why?"),
    ],
)
def test_a_text_loses_its_credentials(text: str, told: str) -> None:
    """User, password, query, schemes' credentials and settings that name one are masked; the rest stays."""
    assert mask_text(text) == told


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 9000, "9" * 400])
@pytest.mark.parametrize("key", ["attempts", "total_seconds", "name"])
def test_a_huge_number_is_a_mistake_like_any_other(cwd: Path, home: Path, key: str, number: str) -> None:
    """A number of any size is refused by an error in one short line."""
    _write(cwd / "recallscope.toml", f"[model]\n{key} = {number}\n")

    assert len(_error(cwd, home)) < 400


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_only_a_regular_file_is_read(cwd: Path, home: Path, what: str) -> None:
    """A pipe or a device is refused at once and never opened: nobody waits for what it may hold."""
    path = Path("/dev/zero")
    if what == "pipe":
        path = cwd / "recallscope.toml"
        os.mkfifo(path)
    with pytest.raises(ConfigError, match="is a pipe or a device; name a file of TOML with --config"):
        load(environ={}, cwd=cwd, home=home, file=path)


def test_the_limits_of_a_session(cwd: Path, home: Path) -> None:
    """A session has no limits unless they are set; 0 is none."""
    plain = _load(cwd, home).session
    limited = _load(cwd, home, {"RECALLSCOPE_SESSION_MAX_TURNS": "2", "RECALLSCOPE_SESSION_MAX_TOKENS": "0"}).session

    assert (plain.max_turns, plain.max_tokens) == (None, None)
    assert (limited.max_turns, limited.max_tokens) == (2, None)


def test_entries_hold_every_key_once_and_are_fit_for_json(cwd: Path, home: Path) -> None:
    """What is in force is listed once for each key, as plain values."""
    entries = list(_load(cwd, home, {"OPENAI_API_KEY": SECRET}).entries())

    assert [entry.key for entry in entries] == list(KEYS)
    assert {type(entry.value) for entry in entries} <= {str, int, float, bool, type(None)}


def test_every_key_has_a_meaning_and_a_default_of_its_own_kind(cwd: Path, home: Path) -> None:
    """Each key says what it means, and its default is readable by its own kind."""
    assert [key.name for key in KEYS.values() if not key.doc] == []
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)
    assert isinstance(_load(cwd, home), Settings)


@given(key=st.sampled_from(sorted(KEYS)), text=st.text(max_size=40))
def test_any_text_is_a_value_or_a_configuration_error(key: str, text: str) -> None:
    """Whatever stands in a variable, the answer is settings or an error about that key, never another exception."""
    try:
        load(environ={KEYS[key].variable: text}, cwd=Path("/nowhere"), home=Path("/nowhere"))
    except ConfigError as error:
        assert error.key == key  # noqa: PT017 - both endings are right; this one must be about the key
