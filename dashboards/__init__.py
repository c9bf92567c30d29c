"""Dashboards, rules and runbooks as a package; what makes them stays with the source."""

if __name__ != "recallscope.dashboards":  # pragma: no cover - only a wrong sys.path gets here
    msg = f"import recallscope.dashboards, not {__name__!r}"
    raise ImportError(msg)
