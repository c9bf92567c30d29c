"""One place each where a recall begins, is asked and ends."""

import ast
from pathlib import Path

import pytest

import recallscope.runtime

RUNTIME = Path(recallscope.runtime.__file__).parent


def calls(method: str) -> list[str]:
    """Return the modules that call `method` of something called a recaller, once for each call."""
    sites: list[str] = []
    for path in sorted(RUNTIME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                owner = ast.unparse(node.func.value)
                if owner.rsplit(".", 1)[-1].strip("_") in {"recaller", "recall"}:
                    sites.append(path.relative_to(RUNTIME).as_posix())
    return sites


@pytest.mark.parametrize(
    ("method", "module"), [("begin", "agent/turn.py"), ("consume", "agent/send.py"), ("finish", "agent/turn.py")]
)
def test_each_has_one_call_site(method: str, module: str) -> None:
    """Begin and finish stand in the turn, consume at the send boundary, and nowhere else."""
    assert calls(method) == [module]


def test_the_work_after_a_turn_is_scheduled_in_one_place() -> None:
    """`post_turn` is called by the turn alone."""
    sites = [
        path.relative_to(RUNTIME).as_posix()
        for path in sorted(RUNTIME.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "post_turn"
    ]

    assert sites == ["agent/turn.py"]
