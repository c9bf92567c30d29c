"""The agent runtime: turns, recall, memory and the front ends."""

if __name__ != "recallscope.runtime":  # pragma: no cover - only a wrong sys.path gets here
    msg = f"import recallscope.runtime, not {__name__!r}: a second copy would make a second set of enums"
    raise ImportError(msg)

__all__ = ["__version__"]

__version__ = "0.1.0"
