"""Dashboards, rules and runbooks as a package; what makes them stays with the source."""

from typing import Final

__all__ = ["RUNBOOKS"]

if __name__ != "recallscope.dashboards":  # pragma: no cover - only a wrong sys.path gets here
    msg = f"import recallscope.dashboards, not {__name__!r}"
    raise ImportError(msg)

RUNBOOKS: Final = "https://github.com/recallscope/recallscope/blob/main/dashboards/runbooks.md"
"""Where runbooks.md can be read: panels and alerts link to it; `recallscope dashboards --runbooks` changes that."""
