"""What every call that is no send states of itself: its begin, and what its answer tells.

The sends of a turn have places and attempts of their own (`agent/send`); the selector, the jobs and the embeddings
share these lines.
"""

from typing import Any

from recallscope.runtime.events import ModelCallStarted, OpId, Purpose
from recallscope.runtime.model.seam import Answer, Endpoint
from recallscope.runtime.observe import Observers

__all__ = ["call_started", "facts_of"]


def call_started(
    observers: Observers, endpoint: Endpoint, purpose: Purpose, *, parent: OpId | None
) -> ModelCallStarted:
    """Make the begin, now, of a call to `endpoint` that is not streamed."""
    return ModelCallStarted(
        op=observers.new_op(),
        at=observers.now(),
        parent=parent,
        purpose=purpose,
        model=endpoint.model,
        provider=endpoint.provider,
        address=endpoint.address,
        port=endpoint.port,
        streamed=False,
    )


def facts_of(answer: Answer) -> dict[str, Any]:
    """Return the fields of a call's finish that `answer` tells."""
    usage = answer.usage
    return {
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cached_tokens": usage.cached_tokens if usage else None,
        "finish_reason": answer.finish_reason,
        "response_model": answer.model,
        "response_id": answer.response_id,
    }
