"""The dashboards, one module each; a later one is a module here and a line in `BOARDS`."""

from typing import Final

from recallscope.dashboards.board import Board
from recallscope.dashboards.boards.comparison import COMPARISON
from recallscope.dashboards.boards.health import HEALTH
from recallscope.dashboards.boards.model_and_tools import MODEL_AND_TOOLS
from recallscope.dashboards.boards.recall import RECALL
from recallscope.dashboards.boards.slow_turn import SLOW_TURN
from recallscope.dashboards.boards.turns import TURNS

__all__ = ["BOARDS"]

BOARDS: Final[tuple[Board, ...]] = (TURNS, SLOW_TURN, RECALL, COMPARISON, MODEL_AND_TOOLS, HEALTH)
"""In the order in which a person on call would open them."""
