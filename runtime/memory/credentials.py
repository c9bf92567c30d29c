"""Finds credentials in what is about to be written to memory: a short list of rules that seldom err.

Notes are read by models, copied into requests and kept for years: a secret has no place in them. A finding names the
rule and the line, never the value. The list is short on purpose and no proof that a text is clean.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

__all__ = ["Finding", "find_credentials"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that looks like it holds a credential; `line` counts from 1."""

    rule: str
    line: int


_RULES: Final = tuple(
    (rule, re.compile(pattern))
    for rule, pattern in (
        ("private-key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
        ("aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
        ("github-token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{40,})\b"),
        ("gitlab-token", r"\bglpat-[0-9A-Za-z_-]{20,}"),
        (
            "slack-token",
            r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|hooks\.slack\.com/services/T[0-9A-Z]+/B[0-9A-Z]+/[0-9A-Za-z]{16,}",
        ),
        ("sk-key", r"\bsk-(?=[A-Za-z_-]*[0-9])[0-9A-Za-z_-]{20,}"),
        ("google-api-key", r"\bAIza[0-9A-Za-z_-]{35}"),
        ("stripe-key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}"),
        ("npm-token", r"\bnpm_[0-9A-Za-z]{36}\b"),
        ("jwt", r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{10,}"),
        ("password-in-url", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?!\*+@|<|\$|\{)[^\s/:@]{6,}@"),
    )
)

_ASSIGNMENT: Final = re.compile(
    r"(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|passwort|密码)\w*[\"'`]?"
    r"\s*(?:=|:|\uff1a|:=|=>|\bis\b)\s*[\"'`]?([^\s\"'`,;]{8,})",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(
    r"^[<$%{\[(*]|^(?:x+|\*+|\.+)$|example|changeme|placeholder|redacted|your[_-]|env[.:(]|environ|vault|://|^/|^~",
    re.IGNORECASE,
)
_RANDOM_BITS: Final = 3.0
"""Bits per character above which a value is taken for a random one, if it also mixes kinds of characters."""


def find_credentials(text: str) -> tuple[Finding, ...]:
    """Return the lines of `text` that look like they hold a credential, in order, each with the first rule it meets."""
    findings = ((_rule_for(line), number) for number, line in enumerate(text.splitlines(), start=1))
    return tuple(Finding(rule, number) for rule, number in findings if rule is not None)


def _rule_for(line: str) -> str | None:
    for rule, pattern in _RULES:
        if pattern.search(line):
            return rule
    if any(_looks_random(match[1]) for match in _ASSIGNMENT.finditer(line)):
        return "assigned-secret"
    return None


def _looks_random(value: str) -> bool:
    if _PLACEHOLDER.search(value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[^\w\s]"))
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
    return kinds > 1 and bool(re.search(r"[0-9]", value)) and bits >= min(_RANDOM_BITS, math.log2(len(value)) - 0.5)
