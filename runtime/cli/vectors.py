"""The configured vectors of memory: opened where an embedding model is named and the extra `semantic` is installed."""

import importlib.util
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from recallscope.runtime.config import Settings
from recallscope.runtime.errors import ConfigError
from recallscope.runtime.model.embeddings import EmbeddingModel
from recallscope.runtime.model.openai_compat import TraceHeaders
from recallscope.runtime.observe import Observers

if TYPE_CHECKING:
    from recallscope.runtime.memory.vectors import Vectors

__all__ = ["open_vectors"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"


@asynccontextmanager
async def open_vectors(
    settings: Settings, trace_headers: TraceHeaders, observers: Observers
) -> AsyncGenerator["Vectors | None", None]:
    """Open the vectors that memory is to work with; None where no embedding model is configured.

    Raises:
        ConfigError: the extra is not installed, or the address or the key cannot be used.
    """
    model = settings.model
    if model.embedding is None or not settings.memory.enabled:
        yield None
        return
    if importlib.util.find_spec("numpy") is None:
        raise ConfigError(
            key="model.embedding",
            value=model.embedding,
            allowed="it needs the extra semantic: pip install 'recallscope[semantic]'",
            source=settings.source("model.embedding"),
        )
    from recallscope.runtime.memory.vectors import Vectors  # noqa: PLC0415 - imports numpy, which may not be there

    key = model.embedding_api_key
    async with EmbeddingModel(
        name=model.embedding,
        base_url=model.embedding_base_url or DEFAULT_BASE_URL,
        api_key=key.value if key is not None else None,
        trace_headers=trace_headers,
        connect_timeout=model.connect_seconds,
        read_timeout=model.first_byte_seconds,
    ) as client:
        yield Vectors(client, observers, threshold=settings.recall.vector_threshold)
