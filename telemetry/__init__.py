"""Spans, metrics, logs and the journal, drawn from the engine's events."""

if __name__ != "recallscope.telemetry":  # pragma: no cover - only a wrong sys.path gets here
    msg = f"import recallscope.telemetry, not {__name__!r}: a second copy would make a second set of enums"
    raise ImportError(msg)

from recallscope.telemetry.environment import import_sdk

import_sdk()
