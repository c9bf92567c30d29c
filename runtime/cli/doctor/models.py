"""Whether the models answer: one small real request each, over the clients and with the timeouts that turns use."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import anyio
import click

from recallscope.runtime.cli.compose import NO_MODEL, open_models
from recallscope.runtime.cli.doctor.finding import Finding, failed, fine, not_applicable, warning
from recallscope.runtime.config import Selector as SelectorChoice
from recallscope.runtime.config import Settings
from recallscope.runtime.errors import ConfigError, ModelError
from recallscope.runtime.memory.note import parse
from recallscope.runtime.messages import TextPart, UserMessage
from recallscope.runtime.model.openai_compat import OpenAICompatModel
from recallscope.runtime.model.seam import ModelRequest
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.terms import ScopeName

__all__ = ["check_models"]

MODEL, SELECTOR = "model", "selector"

SLOW_SELECTOR_SECONDS = 1.0
"""A selection that takes longer comes too late for most turns that call no tool."""

LEAST_TOKENS = 16
"""What the answer to the doctor may have: enough for every server, and hardly a cost."""


async def check_models(settings: Settings) -> tuple[Finding, ...]:
    """Ask the main model and the one that selects notes; both are asked at once."""
    if settings.model.name is None:
        return failed(MODEL, NO_MODEL), not_applicable(SELECTOR, "no model is configured")
    async with AsyncExitStack() as stack:
        try:
            models = await stack.enter_async_context(open_models(settings, lambda _: {}))
        except (ConfigError, click.ClickException) as error:
            return failed(MODEL, str(error)), not_applicable(SELECTOR, "the models cannot be asked")
        found: dict[str, Finding] = {}

        async def ask(check: str, finding: Awaitable[Finding]) -> None:
            found[check] = await finding

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, MODEL, _main(settings, models.main))
            tasks.start_soon(ask, SELECTOR, _selector(settings, models.selector))
        return found[MODEL], found[SELECTOR]


async def _main(settings: Settings, model: OpenAICompatModel) -> Finding:
    request = ModelRequest(
        op=Observers().new_op(),
        system=None,
        messages=(UserMessage((TextPart("Answer with the one word: ready"),)),),
        max_tokens=LEAST_TOKENS,
    )

    async def ask() -> None:
        if not settings.model.stream:
            await model.complete(request)
            return
        async with aclosing(model.stream(request)) as chunks:
            async for chunk in chunks:
                if chunk.accepted:
                    return

    return await _asked(MODEL, model, settings.model.total_seconds, ask)


async def _selector(settings: Settings, model: OpenAICompatModel | None) -> Finding:
    if not settings.memory.enabled:
        return not_applicable(SELECTOR, "memory is switched off, so nothing is selected")
    if model is None or settings.recall.selector is SelectorChoice.NONE:
        return not_applicable(SELECTOR, "recall.selector is none: the words alone choose notes")
    notes = [
        parse(text, scope=ScopeName.PROJECT, root=Path(), relative=name, modified=0.0)
        for name, text in (("reference/red.md", b"# Red\n\nA colour."), ("reference/two.md", b"# Two\n\nA number."))
    ]
    observers = Observers()

    async def ask() -> None:
        selector = Selector(model, observers, limit=1)
        await selector.select(observers.new_op(), "Which colour is it?", notes, (), cause=lambda: None)

    started = time.monotonic()
    finding = await _asked(SELECTOR, model, settings.recall.selector_safety_seconds, ask)
    seconds = time.monotonic() - started
    if finding == fine(SELECTOR, finding.text) and seconds > SLOW_SELECTOR_SECONDS:
        return warning(
            SELECTOR,
            f"{finding.text}, longer than most turns without a tool last: their refined notes come too late; "
            "name a quicker model in model.small",
        )
    return finding


async def _asked(check: str, model: OpenAICompatModel, limit: float, ask: Callable[[], Awaitable[None]]) -> Finding:
    endpoint = model.endpoint
    name = f"{endpoint.model} at {endpoint.address}:{endpoint.port}"
    started = time.monotonic()
    try:
        with anyio.fail_after(limit):
            await ask()
    except ModelError as error:
        return failed(check, f"{name}: {error}")
    except TimeoutError:
        return failed(check, f"{name} did not answer within {limit:g} s; check that the server is not overloaded")
    return fine(check, f"{name} answered after {time.monotonic() - started:.2f} s")
