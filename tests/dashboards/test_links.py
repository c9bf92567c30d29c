"""Every link leads somewhere: to a dashboard that exists, with time and variables; to a heading; to a data source."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

from recallscope.dashboards import config
from recallscope.dashboards.reading import Dashboard


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the sites that show Markdown make them."""
    headings = re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _links(dashboards: tuple[Dashboard, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for dashboard in dashboards:
        for panel in dashboard.panels:
            links = [*(panel.json.get("links") or ()), *(panel.json["fieldConfig"]["defaults"].get("links") or ())]
            yield from ((panel.name, link) for link in links)


def test_links_to_dashboards_lead_to_ours_and_keep_time_and_variables(dashboards: tuple[Dashboard, ...]) -> None:
    """A link to `/d/…` names the uid of a dashboard here, and brings the time range and the variables along."""
    uids = {dashboard.json["uid"] for dashboard in dashboards}
    wrong = [
        f"{name}: {link['url']}"
        for name, link in _links(dashboards)
        if link["url"].startswith("/d/")
        and (
            link["url"].removeprefix("/d/").partition("?")[0] not in uids
            or link["url"].partition("?")[2] != "${__url_time_range}&${__all_variables}"
        )
    ]

    assert wrong == []


def test_every_link_is_of_a_known_kind(dashboards: tuple[Dashboard, ...]) -> None:
    """Links lead to dashboards, to searches for traces, or to runbooks, and each has a title."""
    known = ("/d/", "/explore?", f"${{{config.RUNBOOKS_VARIABLE}}}#")

    assert [name for name, link in _links(dashboards) if not link["url"].startswith(known) or not link["title"]] == []


def test_searches_for_traces_are_searches_of_the_chosen_tempo(dashboards: tuple[Dashboard, ...]) -> None:
    """What Explore is given is JSON with TraceQL for the data source of the variable."""
    found = [link["url"] for _, link in _links(dashboards) if link["url"].startswith("/explore?")]

    assert found
    for url in found:
        [pane] = parse_qs(urlsplit(str(url)).query)["panes"]
        [search] = yaml.safe_load(pane)["t"]["queries"]
        assert search["datasource"] == {"type": "tempo", "uid": "${traces}"}
        assert search["query"].startswith("{ span.")
        assert "${__data.fields.scenario}" in unquote(url)


def test_every_dashboard_links_to_the_others_and_to_the_runbooks(dashboards: tuple[Dashboard, ...]) -> None:
    """All carry the tag by which they find each other; the links keep time range and variables."""
    for dashboard in dashboards:
        others, runbooks = dashboard.json["links"]
        assert dashboard.json["tags"] == [config.TAG]
        assert (others["type"], others["tags"], others["keepTime"], others["includeVars"]) == (
            "dashboards",
            [config.TAG],
            True,
            True,
        )
        assert runbooks["url"] == f"${{{config.RUNBOOKS_VARIABLE}}}"


def test_every_runbook_link_is_a_heading(dashboards: tuple[Dashboard, ...], shipped: Path) -> None:
    """Each anchor that a panel or an alert names is a heading of runbooks.md."""
    anchors = _anchors(shipped / "runbooks.md")
    named = {(name, link["url"].partition("#")[2]) for name, link in _links(dashboards) if "runbooks" in link["url"]}
    for path in sorted((shipped / "rules").glob("*.y*ml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    named.add((rule["alert"], rule["annotations"]["runbook_url"].partition("#")[2]))

    assert {name for name, _ in named if "/" in name}, "no panel has a runbook"
    assert [f"{name}: #{anchor}" for name, anchor in sorted(named) if anchor not in anchors] == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("SlowTurns", "slowturns"), ("Slow turns", "slow-turns"), ("What's `lost`?", "whats-lost")],
)
def test_an_anchor_is_what_a_page_makes_of_its_heading(heading: str, anchor: str, tmp_path: Path) -> None:
    """Links are made from headings by the same rule by which this test reads the page."""
    (tmp_path / "page.md").write_text(f"## {heading}\n", encoding="utf-8")

    assert config.runbook(heading) == f"{config.RUNBOOKS}#{anchor}"
    assert _anchors(tmp_path / "page.md") == {anchor}
