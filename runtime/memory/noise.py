"""Which notes are noise after a tool was just used: notes on how to call it, which the model has just seen to.

Warnings, owners, places of credentials and workarounds stay. Everything is matched by whole words (a tool called `edit`
is not in "credit"), in Chinese by substring, since its writing parts no words.
"""

import re
from collections.abc import Iterable

from recallscope.runtime.memory.note import Note

__all__ = ["aliases", "is_usage_note", "mentions"]

RECENT_TOOLS = 20

_USAGE = re.compile(
    r"\b(?:api (?:docs?|documentation|reference|usage)|usage (?:docs?|documentation|reference|notes?|examples?)"
    r"|(?:failed|guessed|invalid|wrong) (?:tool )?calls?|guess(?:ed|es)? (?:the )?(?:tools?|parameters?|arguments?)"
    r"|field mappings?|mcp tools?|(?:parameter|argument|tool|input) schemas?"
    r"|tool (?:usage|parameters?|arguments?|calls?)"
    r"|how to (?:call|invoke)|call(?:ing)? (?:format|convention)|api-doku(?:mentation)?|aufrufparameter"
    r"|(?:werkzeug|tool)-?aufrufe?)\b"
    r"|参数(?:格式|说明|结构)|工具(?:用法|调用|参数)|调用(?:格式|方式|失败)|接口文档|字段映射|ツールの使い方|引数の形式",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:credentials?|secrets?|passwords?|tokens? (?:are|is|live|lie)|escalat(?:e|ion|ions)"
    r"|gotchas?|known (?:issues?|bugs?)"
    r"|owners?|owned by|ownership|warnings?|caution|caveats?|careful|danger(?:ous)?|never|workarounds?|deprecated"
    r"|rate limits?|warnung|achtung|vorsicht|zugangsdaten|zuständig|umgehung)\b"
    r"|凭证|密钥|负责人|注意|警告|已知问题|变通|绕过|認証情報|担当者|回避策|既知の問題",
    re.IGNORECASE,
)


def is_usage_note(note: Note) -> bool:
    """Say whether `note` documents how something is called, and tells nothing that lasts beyond that."""
    text = _text(note)
    return bool(_USAGE.search(text)) and not _LASTING.search(text)


def aliases(tools: Iterable[str]) -> frozenset[str]:
    """Return the names under which a note may speak of the last 20 distinct tools.

    They are the name itself, what follows the last `::`, and of `mcp__server__tool` both `server__tool` and `tool`.
    """
    recent = list(dict.fromkeys(reversed([tool.casefold() for tool in tools if tool.strip()])))[:RECENT_TOOLS]
    names: set[str] = set()
    for tool in recent:
        names |= {tool, tool.rsplit("::", 1)[-1]}
        if tool.startswith("mcp__"):
            server_and_tool = tool.removeprefix("mcp__")
            names |= {server_and_tool, server_and_tool.split("__", 1)[-1]}
    return frozenset(name for name in names if name)


def mentions(note: Note, names: frozenset[str]) -> bool:
    """Say whether `note` holds one of `names` as a whole word."""
    if not names:
        return False
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return bool(re.search(rf"(?<![^\W_])(?:{words})(?![^\W_])", _text(note).casefold()))


def _text(note: Note) -> str:
    return "\n".join((note.title, note.description, *note.keywords, *note.usage_scenarios, note.body))
