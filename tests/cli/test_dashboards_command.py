"""`recallscope dashboards` writes what is shipped, once, and never over what a person has changed."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from recallscope.dashboards import RUNBOOKS

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_written_and_a_second_run_changes_nothing(run: Run, tmp_path: Path) -> None:
    """Dashboards, rules, runbooks, provisioning and stack are there; what is there as shipped is said to be."""
    folder = tmp_path / "out"

    first = run("dashboards", str(folder))
    written = _files(folder)
    again = run("dashboards", str(folder))

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == f"{folder}: {len(written)} of {len(written)} files written\n"
    assert {path.partition("/")[0] for path in written} == {"grafana", "provisioning", "rules", "runbooks.md", "stack"}
    assert json.loads(written["grafana/turns.json"])["uid"] == "recallscope-turns"
    assert [path for path in written if path.endswith((".py", ".pyc"))] == []
    assert (again.returncode, again.stdout) == (0, f"{folder}: all {len(written)} files are there as shipped\n")
    assert _files(folder) == written


def test_a_changed_file_is_kept_unless_forced(run: Run, tmp_path: Path) -> None:
    """Nothing at all is written when one file differs; --force writes over it, and over nothing else."""
    folder = tmp_path / "out"
    run("dashboards", str(folder))
    shipped = _files(folder)
    (folder / "grafana" / "turns.json").write_text("mine", encoding="utf-8")
    (folder / "grafana" / "own.json").write_text("mine, too", encoding="utf-8")
    (folder / "runbooks.md").unlink()

    refused = run("dashboards", str(folder))
    kept = _files(folder)
    forced = run("dashboards", str(folder), "--force")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "holds other versions of grafana/turns.json: nothing was written; --force writes over them" in refused.stderr
    assert (kept["grafana/turns.json"], "runbooks.md" in kept) == (b"mine", False)
    assert forced.stdout == f"{folder}: 2 of {len(shipped)} files written, 1 of them over a changed one\n"
    assert _files(folder) == shipped | {"grafana/own.json": b"mine, too"}


def test_a_folder_that_is_none_is_told(run: Run, tmp_path: Path) -> None:
    """Where a file stands in the way, one line says which and what to do."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    done = run("dashboards", str(tmp_path / "file"))

    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot write" in done.stderr
    assert "name a folder that can be written to" in done.stderr


def test_links_lead_to_runbooks_of_ones_own(run: Run, tmp_path: Path) -> None:
    """With --runbooks every link of dashboards and alerts leads there; what is no address is wrong use."""
    done = run("dashboards", str(tmp_path / "own"), "--runbooks", "https://wiki.example/oncall")
    wrong = run("dashboards", str(tmp_path / "wrong"), "--runbooks", "wiki#oncall")
    written = _files(tmp_path / "own")

    assert (done.returncode, wrong.returncode) == (0, 2)
    assert "is no address of a page" in wrong.stderr
    assert b"https://wiki.example/oncall#recallscopeslowturns" in written["rules/recallscope-alerts.yaml"]
    assert [path for path, content in written.items() if RUNBOOKS.encode() in content] == []
