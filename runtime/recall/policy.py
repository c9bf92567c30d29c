"""The policies: how recall meets the turn, as one table of plain values.

`deadline` is how such systems recalled at first, `prefetch` holds no turn at all, `tiered` holds one for a moment; all
run on the same handle and the same recaller, so that they can be compared and mixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from recallscope.runtime.errors import ConfigError
from recallscope.runtime.terms import Point, PolicyName

__all__ = ["DEFAULT_CEILING", "Arm", "Policy", "PolicySplit", "SelectionLimit", "policy_named"]

DEFAULT_CEILING = 0.1
DEADLINE_OUTER_LIMIT = 2.5
DEADLINE_SELECTOR_LIMIT = 1.0

_SEARCH_SHARE = 0.8
"""Of the ceiling of `tiered`: what an interrupted search has found must still be ranked and checked in time."""

_SHORTEST_SEARCH = 0.05
"""A ceiling of a few milliseconds ends the wait, not the search, whose result the tool results can still take."""


@dataclass(frozen=True, slots=True)
class SelectionLimit:
    """After how many seconds a selection is given up; `own`: that is the policy's limit, not the safety ceiling."""

    seconds: float
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a policy decides.

    `ceiling`: seconds that the first send may be held; 0 means not at all. `fast`: the deterministic result may be
    delivered, and ends the wait. `points`: where it delivers. `selector_limit`: seconds for the selector, None for no
    limit of the policy's own. `search_limit`: seconds after which the search returns what it has, None for no limit.
    `lexical_fallback`: a failed selector leaves the word matches. `closes_after_initial`: what is not there when the
    wait ends is given up.
    """

    name: PolicyName
    ceiling: float = 0.0
    fast: bool = False
    points: frozenset[Point] = frozenset()
    selector_limit: float | None = None
    search_limit: float | None = None
    lexical_fallback: bool = False
    closes_after_initial: bool = False

    def limit_selection(self, safety: float) -> SelectionLimit:
        """Return what ends a selection that does not end: the policy's limit, or else `safety` seconds."""
        if self.selector_limit is None or self.selector_limit > safety:
            return SelectionLimit(safety, own=False)
        return SelectionLimit(self.selector_limit, own=True)


_BOTH = frozenset({Point.INITIAL, Point.TOOL_RESULT})


def policy_named(name: PolicyName, *, ceiling: float = DEFAULT_CEILING) -> Policy:
    """Return the policy `name`; `ceiling` (seconds) is that of `tiered`, the other policies bring their own.

    Only `tiered` limits its search, since only there a partial result can go with the send that is held for it:
    `deadline` needs the selector's answer and gives everything up at its outer limit, under `prefetch` nobody waits.
    """
    match name:
        case PolicyName.OFF:
            return Policy(name=name)
        case PolicyName.DEADLINE:
            return Policy(
                name=name,
                ceiling=DEADLINE_OUTER_LIMIT,
                points=frozenset({Point.INITIAL}),
                selector_limit=DEADLINE_SELECTOR_LIMIT,
                closes_after_initial=True,
            )
        case PolicyName.PREFETCH:
            return Policy(name=name, points=_BOTH, lexical_fallback=True)
        case PolicyName.TIERED:
            return Policy(
                name=name,
                ceiling=ceiling,
                fast=True,
                points=_BOTH,
                search_limit=max(_SEARCH_SHARE * ceiling, _SHORTEST_SEARCH),
                lexical_fallback=True,
            )


@dataclass(frozen=True, slots=True)
class Arm:
    """One policy of a split and its weight (a positive whole number)."""

    policy: PolicyName
    weight: int


@dataclass(frozen=True, slots=True)
class PolicySplit:
    """Which share of the sessions runs under which policy, for an experiment named `experiment`."""

    arms: tuple[Arm, ...]
    experiment: str = "policy"

    @classmethod
    def parse(cls, text: str, *, experiment: str = "policy", source: str = "the policy setting") -> "PolicySplit":
        """Read `tiered` or `tiered:90,prefetch:10`.

        Raises:
            ConfigError: an unknown policy, a weight that is no positive whole number, a policy named twice.
        """
        arms = [_parse_arm(part.strip(), text, source) for part in text.split(",")]
        names = [arm.policy for arm in arms]
        if len(set(names)) != len(names):
            raise ConfigError(key="recall.policy", value=text, allowed="each policy at most once", source=source)
        return cls(tuple(arms), experiment)

    @property
    def policies(self) -> Sequence[PolicyName]:
        """The policies that are in force."""
        return [arm.policy for arm in self.arms]

    def arm(self, session: str) -> PolicyName:
        """Return the policy of `session`: always the same for the same experiment, session and split."""
        digest = blake2b(f"{self.experiment}\0{session}".encode(), digest_size=8).digest()
        ticket = int.from_bytes(digest, "big") % sum(arm.weight for arm in self.arms)
        for arm in self.arms:
            if ticket < arm.weight:
                return arm.policy
            ticket -= arm.weight
        raise AssertionError("a ticket is below the sum of the weights")


def _parse_arm(part: str, text: str, source: str) -> Arm:
    name, colon, weight = part.partition(":")
    known = {policy.value: policy for policy in PolicyName}
    if name not in known:
        raise ConfigError(
            key="recall.policy",
            value=text,
            allowed=f"one of {', '.join(known)}, or a split such as tiered:90,prefetch:10",
            source=source,
        )
    if colon and not (weight.isascii() and weight.isdigit() and int(weight) > 0):
        raise ConfigError(
            key="recall.policy", value=text, allowed="weights that are positive whole numbers", source=source
        )
    return Arm(known[name], int(weight) if colon else 1)
