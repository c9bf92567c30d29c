"""Puts an agent together from the configuration: the one place where settings become objects.

Heavy imports (the model client, the memory store) happen when this module is imported, which only the commands that
run turns do, and before the first turn is admitted.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import click

from recallscope.runtime.agent.gates import Limits
from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.ready import ready_for_turns
from recallscope.runtime.agent.reminders import workspace_snapshot
from recallscope.runtime.agent.send import Attempts, SendSettings
from recallscope.runtime.agent.tools.files import workspace_tools
from recallscope.runtime.agent.tools.registry import Toolbox
from recallscope.runtime.cli.vectors import open_vectors
from recallscope.runtime.config import Selector, Settings
from recallscope.runtime.errors import ConfigError
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, catalog_path
from recallscope.runtime.model.openai_compat import OpenAICompatModel, TraceHeaders
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.fence import EXPLANATION
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import ScopeName

__all__ = ["Models", "memory_roots", "open_agent", "open_models", "policy_split"]

SYSTEM_PROMPT = (
    "You are a helpful agent that works in the person's workspace with the tools you are given. Use them to find out "
    "what you do not know, and answer briefly and exactly."
)

DEFAULT_BASE_URL = "https://api.openai.com/v1"

NO_MODEL = (
    "no model is configured: set OPENAI_BASE_URL, OPENAI_API_KEY and RECALLSCOPE_MODEL_NAME in the environment, or "
    "[model] name and base_url in recallscope.toml (or try --demo, which brings a scripted model)"
)


class NoModelError(click.ClickException):
    """No model is configured; the sentence says how to configure one."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__(NO_MODEL)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the one sentence."""
        click.echo(f"recallscope: {self.message}", file=file, err=file is None)


@dataclass(frozen=True, slots=True)
class Models:
    """The main model, and the one that selects notes; None: the words alone select."""

    main: OpenAICompatModel
    selector: OpenAICompatModel | None


def policy_split(settings: Settings) -> PolicySplit:
    """Return the policies in force."""
    return PolicySplit.parse(
        settings.recall.policy, experiment=settings.recall.experiment, source=settings.source("recall.policy")
    )


def memory_roots(settings: Settings, directory: Path | None = None) -> MemoryRoots:
    """Return where the notes of this workspace, of the team and of this person lie; with `directory`, it alone.

    Raises:
        ConfigError: a folder for everybody, or a `directory`, together with a tenant, or a team's folder that another
            scope holds as well.
    """
    memory = settings.memory
    if memory.tenant is not None:
        _refuse_beside_tenant(settings, directory)
    if directory is not None:
        return MemoryRoots(project=directory)
    roots = MemoryRoots.below(
        memory.base_dir,
        settings.session.workspace,
        by=memory.project_key.value,
        tenant=memory.tenant,
        team=memory.team_dir,
    )
    if memory.project_dir is not None:
        roots = replace(roots, project=memory.project_dir, base=memory.project_dir)
    _refuse_double_notes(roots, settings)
    return roots


def _refuse_beside_tenant(settings: Settings, directory: Path | None) -> None:
    if directory is not None:
        raise ConfigError(
            key="memory.project_dir",
            value=str(directory),
            allowed="it could be another tenant's folder; leave it out, or memory.tenant",
            source="--memory",
        )
    memory = settings.memory
    for key, shared in (("memory.project_dir", memory.project_dir), ("memory.team_dir", memory.team_dir)):
        if shared is not None:
            raise ConfigError(
                key=key,
                value=str(shared),
                allowed="every tenant would read this folder; leave it empty, or memory.tenant",
                source=settings.source(key),
            )


def _refuse_double_notes(roots: MemoryRoots, settings: Settings) -> None:
    team = next((root.path for root in roots.roots if root.scope is ScopeName.TEAM), None)
    for other in roots.roots:
        if team is None or other.scope is ScopeName.TEAM:
            continue
        if team.is_relative_to(other.path) or other.path.is_relative_to(team):
            raise ConfigError(
                key="memory.team_dir",
                value=str(team),
                allowed=f"a folder apart from {other.path} (scope {other.scope}), else its notes would be found twice",
                source=settings.source("memory.team_dir"),
            )


@asynccontextmanager
async def open_models(settings: Settings, trace_headers: TraceHeaders) -> AsyncGenerator[Models, None]:
    """Open the clients of the configured models.

    Raises:
        NoModelError: no model is configured; the sentence says how to.
        ConfigError: an address or a key cannot be used.
    """
    model = settings.model
    if model.name is None:
        raise NoModelError
    async with AsyncExitStack() as stack:
        main = await stack.enter_async_context(_client(settings, model.name, small=False, headers=trace_headers))
        if settings.recall.selector is Selector.NONE:
            selector = None
        elif model.small is None and model.small_base_url is None:
            selector = main
        else:
            small = _client(settings, model.small or model.name, small=True, headers=trace_headers)
            selector = await stack.enter_async_context(small)
        yield Models(main, selector)


@asynccontextmanager
async def open_agent(
    settings: Settings, trace_headers: TraceHeaders, observers: Observers
) -> AsyncGenerator[tuple[Agent, Memory | None], None]:
    """Open the configured agent and its memory; the memory is None where it is switched off.

    Raises:
        NoModelError: no model is configured.
        ConfigError: the workspace is no folder, or the model's address, its key or a file cannot be used.
    """
    workspace = _workspace(settings)
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(open_models(settings, trace_headers))
        memory = None
        if settings.memory.enabled:
            roots = memory_roots(settings)
            path = catalog_path(roots, settings.memory.cache_dir)
            vectors = await stack.enter_async_context(open_vectors(settings, trace_headers, observers))
            memory = await stack.enter_async_context(
                open_memory(roots, catalog_path=path, observers=observers, watch=True, vectors=vectors)
            )
        recall = RecallSettings(
            split=policy_split(settings),
            ceiling=settings.recall.ceiling_seconds,
            budget=Budget(settings.recall.budget_notes, settings.recall.budget_characters),
            selector_safety=settings.recall.selector_safety_seconds,
        )
        toolbox = Toolbox(workspace_tools(workspace))
        send = SendSettings(
            system=_system_prompt(settings),
            tools=toolbox.specs,
            limits=Limits(
                max_sends=settings.agent.max_sends,
                max_turns=settings.session.max_turns,
                session_tokens=settings.session.max_tokens,
            ),
            attempts=Attempts(number=settings.model.attempts, total=settings.model.total_seconds),
            streamed=settings.model.stream,
            max_tokens=settings.model.max_tokens,
        )
        agent = Agent(
            name=settings.agent.name,
            model=models.main,
            selector_model=models.selector,
            memory=memory,
            recall=recall,
            observers=observers,
            toolbox=toolbox,
            settings=send,
            reminders=(workspace_snapshot(workspace, wall=time.time),),
        )
        stack.enter_context(ready_for_turns())
        yield agent, memory


def _client(settings: Settings, name: str, *, small: bool, headers: TraceHeaders) -> OpenAICompatModel:
    model = settings.model
    base_url = model.small_base_url if small else model.base_url
    key = model.small_api_key if small else model.api_key
    return OpenAICompatModel(
        name=name,
        base_url=base_url or model.base_url or DEFAULT_BASE_URL,
        api_key=key.value if key is not None else None,
        trace_headers=headers,
        connect_timeout=model.connect_seconds,
        first_byte_timeout=model.first_byte_seconds,
        read_timeout=model.silence_seconds,
    )


def _workspace(settings: Settings) -> Path:
    workspace = settings.session.workspace
    try:
        usable = workspace.is_dir()
    except OSError:
        usable = False
    if not usable:
        raise ConfigError(
            key="session.workspace",
            value=str(workspace),
            allowed="it must be a folder that exists and may be looked into",
            source=settings.source("session.workspace"),
        )
    return workspace


def _system_prompt(settings: Settings) -> str:
    file: Path | None = settings.agent.system_prompt_file
    if file is None:
        return f"{SYSTEM_PROMPT}\n\n{EXPLANATION}"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            key="agent.system_prompt_file",
            value=str(file),
            allowed=f"a readable text file in UTF-8 ({error})",
            source=settings.source("agent.system_prompt_file"),
        ) from error
    return f"{text.rstrip()}\n\n{EXPLANATION}"
