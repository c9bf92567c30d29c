"""The stack and Grafana's provisioning: sound by schema, and true to each other and to what is shipped."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from recallscope.runtime.cli.dashboards import shipped_files


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def services(shipped: Path) -> dict[str, dict[str, Any]]:
    """Give the services of the compose file."""
    return _yaml(shipped / "stack" / "compose.yaml")["services"]


def test_the_compose_file_keeps_to_the_specification(shipped: Path) -> None:
    """The schema of the Compose specification takes it."""
    file = shipped / "stack" / "compose.yaml"
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]

    done = subprocess.run(check, check=False, capture_output=True, text=True, timeout=50)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_images_are_pinned_by_version(services: dict[str, dict[str, Any]]) -> None:
    """Each image names a version; the agent is built."""
    images = {name: service["image"] for name, service in services.items() if "image" in service}

    assert images.keys() == {"collector", "prometheus", "tempo", "grafana"}
    assert [image for image in images.values() if not re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image)] == []


def test_each_service_says_how_it_is_or_why_it_cannot(services: dict[str, dict[str, Any]], shipped: Path) -> None:
    """Checks ask the service's own port on loopback; the collector's image has nothing to ask with, and says so."""
    checks = {name: service["healthcheck"]["test"] for name, service in services.items() if "healthcheck" in service}
    asked = {name: re.findall(r"http://127\.0\.0\.1:(\d+)(/[\w/-]+)", " ".join(test)) for name, test in checks.items()}
    agent = services["agent"]["environment"]["OTEL_EXPORTER_PROMETHEUS_PORT"]

    assert asked == {
        "agent": [(agent, "/metrics")],
        "prometheus": [("9090", "/-/healthy")],
        "tempo": [("3200", "/ready")],
        "grafana": [("3000", "/api/health")],
    }
    assert all(test[0] == "CMD" for test in checks.values()), "a shell is not in every image"
    text = (shipped / "stack" / "compose.yaml").read_text(encoding="utf-8")
    assert "# no healthcheck:" in text.partition("  collector:")[2].partition("  prometheus:\n    image")[0]


def test_services_start_in_an_order_that_can_be_met(services: dict[str, dict[str, Any]]) -> None:
    """Whoever is waited for until it is healthy has a check; nobody waits for itself."""
    waits = {name: service.get("depends_on", {}) for name, service in services.items()}
    healthy = {
        other for needed in waits.values() for other, how in needed.items() if how["condition"] == "service_healthy"
    }

    assert {name: sorted(needed) for name, needed in waits.items() if needed} == {
        "agent": ["collector"],
        "collector": ["prometheus", "tempo"],
        "grafana": ["prometheus", "tempo"],
    }
    assert [name for name in healthy if "healthcheck" not in services[name]] == []


@pytest.mark.parametrize(
    ("wheels", "installed"),
    [
        ((), "recallscope"),
        (("recallscope-0.4.0-py3-none-any.whl",), "recallscope-0.4.0-py3-none-any.whl"),
        (
            ("recallscope-0.10.0-py3-none-any.whl", "recallscope-0.9.0-py3-none-any.whl", "other-1.0-py3-none-any.whl"),
            "recallscope-0.10.0-py3-none-any.whl",
        ),
    ],
    ids=["none", "one", "two"],
)
def test_the_agent_is_installed_from_the_newest_wheel(
    shipped: Path, tmp_path: Path, wheels: tuple[str, ...], installed: str
) -> None:
    """However many wheels lie there, pip is given one; without any, the name in the package index."""
    for wheel in wheels:
        (tmp_path / wheel).touch()
    text = (shipped / "stack" / "agent.Dockerfile").read_text(encoding="utf-8")
    [command] = re.findall(r"^RUN (wheel=.*?[^\\])$", text, flags=re.MULTILINE | re.DOTALL)
    told = command.replace("/wheels", str(tmp_path)).replace("pip install --no-cache-dir", "printf '%s\\n'")

    done = subprocess.run(["sh", "-c", told], check=True, capture_output=True, text=True, timeout=10)

    assert [line.removeprefix(f"{tmp_path}/") for line in done.stdout.splitlines()] == [installed]


def test_every_file_that_is_mounted_is_shipped(services: dict[str, dict[str, Any]], shipped: Path) -> None:
    """What a service reads from disk is in the folder that `recallscope dashboards` writes."""
    paths = set(shipped_files())
    folders = {path.rpartition("/")[0] for path in paths}
    mounted = [
        (shipped / "stack" / volume.split(":")[0]).resolve().relative_to(shipped.resolve()).as_posix()
        for service in services.values()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]

    assert len(mounted) >= 7
    assert [path for path in mounted if path not in paths | folders] == []


def test_named_volumes_are_declared(services: dict[str, dict[str, Any]], shipped: Path) -> None:
    """Each volume that is used is declared, and the other way round."""
    used = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", ())
        if not volume.startswith(".")
    }

    assert used == set(_yaml(shipped / "stack" / "compose.yaml")["volumes"])


def test_ports_are_open_on_loopback_only(services: dict[str, dict[str, Any]]) -> None:
    """Nothing of the stack listens to the network of the machine."""
    ports = [port for service in services.values() for port in service.get("ports", ())]

    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_the_agent_plays_a_load_that_the_command_takes(services: dict[str, dict[str, Any]]) -> None:
    """The service's command line is one of `recallscope load`."""
    command = [sys.executable, "-m", "recallscope.runtime.cli", *services["agent"]["command"], "--help"]

    assert subprocess.run(command, check=False, capture_output=True, timeout=50).returncode == 0


def test_the_services_find_each_other(services: dict[str, dict[str, Any]], shipped: Path) -> None:
    """Every host that a configuration names is a service, at the port that this one serves."""
    stack = shipped / "stack"
    prometheus = _yaml(stack / "prometheus.yml")
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in prometheus["scrape_configs"]}
    collector = (stack / "otel-collector.yaml").read_text(encoding="utf-8")
    tempo = _yaml(stack / "tempo.yaml")
    agent, grafana = services["agent"]["environment"], services["grafana"]["environment"]

    assert targets == {
        "recallscope": [f"agent:{agent['OTEL_EXPORTER_PROMETHEUS_PORT']}"],
        "otelcol": ["collector:8888"],
    }
    assert agent["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    assert ":-tempo:4317}" in collector
    assert ":-http://prometheus:9090/api/v1/write}" in collector
    assert ":-8888}" in collector
    assert services["collector"]["command"] == ["--config=/etc/otelcol/config.yaml", "--config=/etc/otelcol/stack.yaml"]
    assert tempo["distributor"]["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].endswith(":4317")
    assert grafana["TEMPO_URL"] == f"http://tempo:{tempo['server']['http_listen_port']}"
    assert grafana["PROMETHEUS_URL"] == "http://prometheus:9090"


def test_the_collector_takes_the_variables_that_the_stack_sets(
    services: dict[str, dict[str, Any]], shipped: Path
) -> None:
    """A variable that the shipped file does not read would change nothing."""
    collector = (shipped / "stack" / "otel-collector.yaml").read_text(encoding="utf-8")

    assert [name for name in services["collector"]["environment"] if f"${{env:{name}:-" not in collector] == []


@pytest.mark.parametrize("store", ["tempo", "jaeger"])
def test_exemplars_lead_to_the_store_of_traces(shipped: Path, store: str) -> None:
    """The label that exemplars carry leads to a data source of the same file; addresses are variables."""
    sources = {one["type"]: one for one in _yaml(shipped / "provisioning" / store / "datasources.yaml")["datasources"]}
    [destination] = sources["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]

    assert sources.keys() == {"prometheus", store}
    assert (destination["name"], destination["datasourceUid"]) == ("trace_id", sources[store]["uid"])
    assert [one["url"] for one in sources.values()] == ["${PROMETHEUS_URL}", f"${{{store.upper()}_URL}}"]
    assert sources["prometheus"]["isDefault"] is True


def test_a_span_leads_to_the_figures_of_its_process(shipped: Path, exposed: Mapping[str, frozenset[str]]) -> None:
    """Tempo asks the same Prometheus, for series that a process exposes, by the instance that the collector names."""
    sources = {
        one["type"]: one for one in _yaml(shipped / "provisioning" / "tempo" / "datasources.yaml")["datasources"]
    }
    link = sources["tempo"]["jsonData"]["tracesToMetrics"]

    assert link["datasourceUid"] == sources["prometheus"]["uid"]
    assert link["tags"] == [{"key": "service.instance.id", "value": "instance"}]
    assert len(link["queries"]) == 3
    for asked in link["queries"]:
        [series] = re.findall(r'(\w+)\{job=~"recallscope/.\+", \$\$__tags\}', asked["query"])
        assert series in exposed
        assert asked["query"].count("$") == asked["query"].count("$$") * 2


def test_the_dashboards_are_found_where_they_are_mounted(services: dict[str, dict[str, Any]], shipped: Path) -> None:
    """The provider's folder is the mount of the generated JSON."""
    [provider] = _yaml(shipped / "provisioning" / "dashboards.yaml")["providers"]

    assert f"../grafana:{provider['options']['path']}:ro" in services["grafana"]["volumes"]
    assert provider["allowUiUpdates"] is False
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home.removeprefix(f"{provider['options']['path']}/") in {
        path.removeprefix("grafana/") for path in shipped_files()
    }


@pytest.mark.real
def test_promtool_takes_the_configuration(shipped: Path, tmp_path: Path) -> None:
    """The Prometheus of the stack starts with its file and with the rules that it names."""
    promtool = shutil.which("promtool")
    assert promtool is not None, "no promtool on the path: apt-get install --no-install-recommends prometheus"
    text = (shipped / "stack" / "prometheus.yml").read_text(encoding="utf-8")
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules", str(shipped / "rules")), encoding="utf-8")

    done = subprocess.run(
        [promtool, "check", "config", config], check=False, capture_output=True, text=True, timeout=50
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "rule" in done.stdout
