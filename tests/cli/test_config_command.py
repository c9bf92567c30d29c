"""`recallscope config` prints what is in force, and a mistake is one line and exit code 2."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recallscope.runtime.config.settings import KEYS

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_table_shows_each_key_with_its_source(run: Run, tmp_path: Path) -> None:
    """The table has one line a key: name, value, and where the value came from."""
    file = tmp_path / "work" / "recallscope.toml"
    file.write_text("[recall]\npolicy = 'prefetch'\n", encoding="utf-8")

    done = run("--set", "agent.name=mine", "config", environ={"OPENAI_API_KEY": "sk-secret"})
    lines = done.stdout.splitlines()
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines[2:]}

    assert (done.returncode, done.stderr, lines[0]) == (0, "", f"file: {file}")
    assert list(rows) == list(KEYS)
    assert rows["recall.policy"] == ["prefetch", str(file)]
    assert rows["agent.name"] == ["mine", "flag --set"]
    assert rows["model.api_key"] == ["********", "environment OPENAI_API_KEY"]
    assert rows["model.small_api_key"] == ["********", "model.api_key"]
    assert rows["model.name"] == ["(none)", "default"]
    assert "sk-secret" not in done.stdout


def test_json_is_one_object(run: Run) -> None:
    """`--json` prints one object: value, source and meaning for each key, and the standard variables masked."""
    done = run(
        "config",
        "--json",
        environ={
            "RECALLSCOPE_RECALL_CEILING_SECONDS": "0.05",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:sk-secret@127.0.0.1:4318",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=sk-secret",
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://u:p/w@h/?token=sk-secret",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/?token=sk-secret",
            "OTEL_RESOURCE_ATTRIBUTES": "a=1,token=sk-secret",
        },
    )
    told: dict[str, Any] = json.loads(done.stdout)

    assert (told["schema"], told["file"], list(told["settings"])) == (1, None, list(KEYS))
    assert told["settings"]["recall.ceiling_seconds"] == {
        "value": 0.05,
        "source": {"origin": "environment", "name": "RECALLSCOPE_RECALL_CEILING_SECONDS"},
        "meaning": KEYS["recall.ceiling_seconds"].doc,
    }
    assert told["settings"]["model.name"]["source"] == {"origin": "default", "name": None}
    assert told["opentelemetry"] == {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://********@127.0.0.1:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "********",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://********@h/?********",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/?********",
        "OTEL_RESOURCE_ATTRIBUTES": "a=1,token=********",
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "model.attempts=many", "config"], "model.attempts = 'many' (from flag --set) is not allowed"),
        (["--set", "recall.policy=fastest", "config"], "recall.policy = 'fastest' (from flag --set) is not allowed"),
        (["--set", "recall.policy=tiered:0", "config"], "weights that are positive whole numbers"),
        (["--set", "recall.polcy=off", "config"], "did you mean recall.policy?"),
        (["--config", "missing.toml", "config"], "No such file or directory"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_exit_code_2(run: Run, arguments: list[str], told: str) -> None:
    """A mistake in the configuration is one line on stderr, without a traceback, and exit code 2."""
    done = run(*arguments)

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("recallscope: ")
    assert told in done.stderr


def test_an_assignment_without_a_value_is_wrong_use(run: Run) -> None:
    """`--set` wants KEY=VALUE and says so."""
    done = run("--set", "recall.policy", "config")

    assert (done.returncode, done.stdout) == (2, "")
    assert "it must be KEY=VALUE" in done.stderr
