"""An answer of the main model as it comes in."""

from dataclasses import dataclass, field

from recallscope.runtime.messages import AssistantMessage, ToolCall
from recallscope.runtime.model.answer import well_formed
from recallscope.runtime.model.seam import Chunk, ToolCallDelta, Usage
from recallscope.runtime.terms import TurnOutcome

__all__ = ["Reply"]


@dataclass(slots=True)
class Reply:
    """The text, the tool calls, and what the model server tells about them, chunk by chunk."""

    text: list[str] = field(default_factory=list[str])
    calls: dict[int, list[ToolCallDelta]] = field(default_factory=dict[int, list[ToolCallDelta]])
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None

    def add(self, chunk: Chunk) -> None:
        """Take one more chunk."""
        if chunk.text:
            self.text.append(chunk.text)
        for delta in chunk.tool_calls:
            self.calls.setdefault(delta.index, []).append(delta)
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.usage = chunk.usage or self.usage
        self.model = chunk.model or self.model
        self.response_id = chunk.response_id or self.response_id

    @property
    def begun(self) -> bool:
        """Something of the answer has come: asking again would say it twice."""
        return bool(self.text or self.calls)

    @property
    def outcome(self) -> TurnOutcome:
        """How a turn ends whose last answer this is."""
        match self.finish_reason:
            case "length":
                return TurnOutcome.MAX_TOKENS
            case "content_filter":
                return TurnOutcome.REFUSAL
            case _:
                return TurnOutcome.END_TURN

    def message(self) -> AssistantMessage:
        """Return the answer; the calls of one that hit its length are cut off and are not made."""
        whole = self.finish_reason != "length"
        return AssistantMessage("".join(self.text), self._tool_calls() if whole else (), complete=whole)

    def fragment(self) -> AssistantMessage | None:
        """Return what came of an answer that broke off: its text, or None; its tool calls are never made."""
        text = "".join(self.text)
        return AssistantMessage(text, complete=False) if text else None

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        calls: list[ToolCall] = []
        for index, deltas in sorted(self.calls.items()):
            call_id = next((delta.call_id for delta in deltas if delta.call_id), f"call_{index}")
            tool = next((delta.tool for delta in deltas if delta.tool), "")
            arguments = well_formed("".join(delta.arguments for delta in deltas))
            calls.append(ToolCall(well_formed(call_id), well_formed(tool), arguments))
        return tuple(calls)
