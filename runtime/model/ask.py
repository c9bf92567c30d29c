"""What every call that is no send has in common: what it states of itself, and how its structured answer is read.

The sends of a turn have places and attempts of their own (`agent/send`); the selector, the jobs and the embeddings
share these lines.
"""

import json
import re
from typing import Any, cast

from recallscope.runtime.events import ModelCallStarted, OpId, Purpose
from recallscope.runtime.model.seam import Answer, Endpoint
from recallscope.runtime.observe import Observers

__all__ = ["call_started", "facts_of", "json_object_of"]

_FENCED = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


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


def json_object_of(text: str) -> dict[str, object] | None:
    """Return the JSON object that a structured answer is, None if it is none.

    Servers without schemas let models put it into a fenced block; what stands around such a block is no answer.
    """
    fenced = _FENCED.match(text)
    try:
        value: object = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None
