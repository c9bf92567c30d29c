"""What a check of the doctor comes to."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, unique

__all__ = ["Finding", "State", "failed", "fine", "not_applicable", "warning", "worst"]


@unique
class State(StrEnum):
    """How a check came out; the later, the worse, but for the last one, which says that there was nothing to check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of the check called `check`; `text` is one sentence that says what is so and what to do."""

    check: str
    state: State
    text: str


def fine(check: str, text: str) -> Finding:
    """Return that all is well."""
    return Finding(check, State.OK, text)


def warning(check: str, text: str) -> Finding:
    """Return that it works, though not as one may think."""
    return Finding(check, State.WARNING, text)


def failed(check: str, text: str) -> Finding:
    """Return that it does not work."""
    return Finding(check, State.FAILED, text)


def not_applicable(check: str, text: str) -> Finding:
    """Return that there was nothing to check, and why."""
    return Finding(check, State.NOT_APPLICABLE, text)


def worst(findings: Iterable[Finding]) -> State:
    """Return the worst state of all; `ok` where nothing was checked."""
    states = {finding.state for finding in findings}
    return next((state for state in (State.FAILED, State.WARNING) if state in states), State.OK)
