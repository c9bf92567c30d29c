"""One batch of tool calls: every call is answered exactly once, whatever ends the batch."""

from collections.abc import Sequence

from recallscope.runtime.agent.history import History
from recallscope.runtime.agent.recent_tools import RecentTools
from recallscope.runtime.agent.tools.registry import Toolbox, ToolContext
from recallscope.runtime.agent.turn_state import ToolCallEnded, ToolCallStarted, TurnState
from recallscope.runtime.events import ToolStarted
from recallscope.runtime.messages import ToolCall, ToolResultPart, UserMessage
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import TurnPhase

__all__ = ["ToolBatch"]

NOT_RUN = "The call was cancelled; it was not run to its end."
UNKNOWN_TOOL = "_other"


class ToolBatch:
    """Runs the calls of an answer in order, and states each as an operation of the turn."""

    def __init__(self, *, toolbox: Toolbox, observers: Observers, history: History, recent_tools: RecentTools) -> None:
        self._toolbox = toolbox
        self._observers = observers
        self._history = history
        self._recent_tools = recent_tools

    async def run(self, state: TurnState, calls: Sequence[ToolCall]) -> tuple[ToolResultPart, ...]:
        """Return the answers in call order; when the batch is cut off, history gets an answer for each call first."""
        results: list[ToolResultPart] = []
        try:
            with state.phases.during(TurnPhase.TOOL):
                for call in calls:
                    await state.listener(ToolCallStarted(call.call_id, call.tool, call.arguments))
                    result = await self._call(state, call)
                    # What was run counts, also when the batch is cut off while the front end is told.
                    results.append(result)
                    await state.listener(ToolCallEnded(call.call_id, call.tool, result.is_error))
        except BaseException:
            missing = (
                ToolResultPart(call.call_id, call.tool, NOT_RUN, is_error=True) for call in calls[len(results) :]
            )
            self._history.sent(UserMessage((*results, *missing)))
            raise
        return tuple(results)

    async def _call(self, state: TurnState, call: ToolCall) -> ToolResultPart:
        started = ToolStarted(
            op=self._observers.new_op(),
            at=self._observers.now(),
            parent=state.op,
            # A model can invent names; only registered ones may become labels.
            tool=call.tool if call.tool in self._toolbox else UNKNOWN_TOOL,
            call_id=call.call_id,
        )
        with self._observers.operation(started, cause=lambda: state.scope.cause) as operation:
            output = await self._toolbox.run(call.tool, call.arguments, ToolContext(started.op))
            operation.note(characters=len(output.text), is_error=output.is_error)
        if call.tool in self._toolbox:
            self._recent_tools.record(call.tool)
        return ToolResultPart(call.call_id, call.tool, output.text, output.is_error)
