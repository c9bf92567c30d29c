"""Where the configuration says that notes lie: project, team and person, and one folder for each tenant."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recallscope.runtime.cli.compose import memory_roots
from recallscope.runtime.cli.main import main
from recallscope.runtime.config import Settings, load
from recallscope.runtime.errors import ConfigError
from recallscope.runtime.memory.scopes import project_key, tenant_key

Load = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path) -> Load:
    """Return a function that loads settings for a workspace below a git root, from variables."""
    work = tmp_path / "work" / "sub"
    work.mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir()

    def load_them(**variables: str) -> Settings:
        environ = {f"RECALLSCOPE_MEMORY_{name.upper()}": value for name, value in variables.items()}
        return load(environ=environ, cwd=work, home=tmp_path / "home")

    return load_them


def paths(settings: Settings) -> dict[str, Path]:
    """Return the folder of each scope, in order."""
    return {root.scope.value: root.path for root in memory_roots(settings).roots}


def test_without_a_setting_there_are_project_and_user(settings: Load, tmp_path: Path) -> None:
    """The team scope is off until somebody names its folder."""
    base, key = tmp_path / "home" / ".recallscope", project_key(tmp_path / "work")
    assert paths(settings()) == {"project": base / "projects" / key / "memory", "user": base / "memory"}


def test_a_team_folder_is_a_scope_between_them(settings: Load, tmp_path: Path) -> None:
    """A relative one lies below the folder where the setting was made."""
    found = paths(settings(team_dir="team-memory"))
    assert (list(found), found["team"]) == (["project", "team", "user"], tmp_path / "work" / "sub" / "team-memory")


def test_the_workspace_can_be_the_project(settings: Load, tmp_path: Path) -> None:
    """`project_key = "workspace"` gives each folder of a repository a memory of its own."""
    found = paths(settings(project_key="workspace"))
    assert found["project"].parent.name == project_key(tmp_path / "work" / "sub", by="workspace")


def test_a_tenant_has_every_root_and_the_catalog_below_its_own_folder(settings: Load, tmp_path: Path) -> None:
    """Nothing of a tenant lies outside `tenants/<key>`, and the base of the catalog is that folder."""
    roots = memory_roots(settings(tenant="acme/../Bob"))
    own = tmp_path / "home" / ".recallscope" / "tenants" / tenant_key("acme/../Bob")
    assert roots.base == own
    assert [root.path.is_relative_to(own) for root in roots.roots] == [True, True]


@pytest.mark.parametrize("key", ["project_dir", "team_dir"])
def test_a_folder_for_everybody_is_refused_with_a_tenant(settings: Load, key: str) -> None:
    """One folder that every tenant reads would be the crossing that tenants are there to prevent."""
    with pytest.raises(ConfigError, match=f"memory.{key}.*every tenant would read"):
        memory_roots(settings(tenant="a", **{key: "shared"}))


@pytest.mark.usefixtures("memory_says")
@pytest.mark.parametrize("command", [("memory", "list"), ("memory", "add", "--body", "x"), ("recall", "port")])
def test_a_folder_named_on_the_command_line_is_refused_with_a_tenant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """`--memory` leads into no other tenant's folder: one sentence, and nothing is read or written."""
    monkeypatch.delenv("RECALLSCOPE_MEMORY_PROJECT_DIR")
    monkeypatch.setenv("RECALLSCOPE_MEMORY_TENANT", "bob")
    folder = tmp_path / "home/.recallscope/tenants" / tenant_key("alice") / "memory"
    folder.mkdir(parents=True)
    (folder / "port.md").write_text("# The port of alice")

    code = main([*command, "--memory", str(folder)])

    written = capsys.readouterr()
    assert (code, written.out, [path.name for path in folder.iterdir()]) == (2, "", ["port.md"])
    assert written.err == (
        f"recallscope: memory.project_dir = {str(folder)!r} (from --memory) is not allowed: it could be another "
        "tenant's folder; leave it out, or memory.tenant\n"
    )


@pytest.mark.parametrize("team", ["~/.recallscope/memory", "~/.recallscope", "~/.recallscope/memory/team"])
def test_a_team_folder_that_holds_or_is_in_another_scope_is_refused(settings: Load, team: str) -> None:
    """Its notes would be found twice, under two names."""
    with pytest.raises(ConfigError, match="found twice"):
        memory_roots(settings(team_dir=team))
