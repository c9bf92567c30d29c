"""The policies, and the split of an experiment."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.errors import ConfigError
from recallscope.runtime.recall.policy import Arm, PolicySplit, policy_named
from recallscope.runtime.terms import Point, PolicyName


def test_the_table_of_policies() -> None:
    """Ceiling, fast delivery, selector limit, fallback and points are those of docs/recall.md."""
    got = {
        name: (
            policy.ceiling,
            policy.fast,
            policy.selector_limit,
            policy.lexical_fallback,
            policy.closes_after_initial,
            policy.points,
        )
        for name in PolicyName
        if (policy := policy_named(name))
    }
    both, first = frozenset({Point.INITIAL, Point.TOOL_RESULT}), frozenset({Point.INITIAL})

    assert got == {
        PolicyName.OFF: (0.0, False, None, False, False, frozenset()),
        PolicyName.DEADLINE: (2.5, False, 1.0, False, True, first),
        PolicyName.PREFETCH: (0.0, False, None, True, False, both),
        PolicyName.TIERED: (0.1, True, None, True, False, both),
    }


def test_the_ceiling_is_configurable_for_tiered_alone() -> None:
    """A configured ceiling changes `tiered`; the other policies bring their own."""
    assert [policy_named(name, ceiling=0.3).ceiling for name in PolicyName] == [0.0, 2.5, 0.0, 0.3]


def test_a_search_is_interrupted_where_a_send_is_held_for_it() -> None:
    """Under `tiered` a search has four fifths of the ceiling, 50 ms at least; under the others it has no limit."""
    assert [policy_named(name).search_limit for name in PolicyName] == [None, None, None, pytest.approx(0.08)]
    limits = [policy_named(PolicyName.TIERED, ceiling=ceiling).search_limit for ceiling in (0.0, 0.01, 1.0)]
    assert limits == [0.05, 0.05, 0.8]


@pytest.mark.parametrize(
    ("text", "arms"),
    [
        ("tiered", (Arm(PolicyName.TIERED, 1),)),
        ("tiered:90,prefetch:10", (Arm(PolicyName.TIERED, 90), Arm(PolicyName.PREFETCH, 10))),
        (" off , deadline:2 ", (Arm(PolicyName.OFF, 1), Arm(PolicyName.DEADLINE, 2))),
    ],
)
def test_a_split_is_read(text: str, arms: tuple[Arm, ...]) -> None:
    """One policy, or several with weights."""
    split = PolicySplit.parse(text)

    assert split.arms == arms
    assert list(split.policies) == [arm.policy for arm in arms]


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", "one of off, deadline, prefetch, tiered"),
        ("quick", "one of off, deadline, prefetch, tiered"),
        ("tiered:", "positive whole numbers"),
        ("tiered:0", "positive whole numbers"),
        ("tiered:-1", "positive whole numbers"),
        ("tiered:1.5", "positive whole numbers"),
        ("tiered:²", "positive whole numbers"),
        ("tiered:1,tiered:2", "each policy at most once"),
    ],
)
def test_a_wrong_split_says_what_is_allowed(text: str, allowed: str) -> None:
    """The error names the key, the value, where it came from and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        PolicySplit.parse(text, source="recallscope.toml")

    assert str(caught.value).startswith(f"recall.policy = {text!r} (from recallscope.toml) is not allowed: ")
    assert allowed in str(caught.value)


@given(st.text(min_size=1), st.sampled_from(["a", "b"]))
def test_a_session_keeps_its_arm(session: str, experiment: str) -> None:
    """The same session falls into the same arm each time."""
    split = PolicySplit.parse("tiered:1,prefetch:1", experiment=experiment)

    assert split.arm(session) is split.arm(session)


def test_the_arms_have_their_weights() -> None:
    """Of many sessions each arm gets about its share, and another experiment shares them out anew."""
    sessions = [f"session-{number}" for number in range(2_000)]
    split = PolicySplit.parse("tiered:90,prefetch:10")
    other = PolicySplit.parse("tiered:90,prefetch:10", experiment="other")
    counts = Counter(split.arm(session) for session in sessions)

    assert 150 < counts[PolicyName.PREFETCH] < 250
    assert [split.arm(session) for session in sessions] != [other.arm(session) for session in sessions]
