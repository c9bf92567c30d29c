"""Fixtures and settings that every test may use."""

import pytest
from hypothesis import settings

# The same tree gives the same answer; `make fuzz` looks for new counterexamples, ten times as hard.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("searching", max_examples=1_000, deadline=None, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the loop that the product runs on."""
    return "asyncio"
