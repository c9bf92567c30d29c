"""The baseline of the search: the approach of the reference system, which reads and parses every file in every recall.

Its scorer is described in its public documents: the query's words of three letters or more (pairs of characters in
Chinese, Japanese and Korean), at most the first 32 and the last 32, are looked for as parts of words; a token counts 4
in the title, 3 in the description, 4 in the keywords, 3 in the phrasings, 1 in the first 1,200 characters of the body;
equals go by time. Front matter is cut at its colons here, quicker than a YAML parser would: the baseline is flattered.
"""

import os
import re
import unicodedata
from pathlib import Path

__all__ = ["scan_everything"]

_BODY = 1_200
_HALF = 32
_FAST = 2
_CJK = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7ff"
_RUNS = re.compile(rf"[{_CJK}]{{2,}}|(?:(?![{_CJK}])[^\W_]){{3,}}")
_POINTS = (("name", 4), ("description", 3), ("keywords", 4), ("usage_scenarios", 3), ("body", 1))


def scan_everything(root: Path, query: str) -> list[str]:
    """Return the at most two best files for `query`, having read all."""
    tokens = _tokens(query)
    scored: list[tuple[int, float, str]] = []
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.endswith(".md") or name == "MEMORY.md":
                continue
            path = os.path.join(folder, name)  # noqa: PTH118 - the quicker way, for the baseline
            with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - the same
                modified = os.fstat(stream.fileno()).st_mtime
                fields = _fields(stream.read())
            points = sum(worth for field, worth in _POINTS for token in tokens if token in fields.get(field, ""))
            if points:
                scored.append((points, modified, path))
    scored.sort(reverse=True)
    return [path for _, _, path in scored[:_FAST]]


def _fields(text: str) -> dict[str, str]:
    text = _normal(text)
    fields: dict[str, str] = {}
    if text.startswith("---\n"):
        block, _, text = text[4:].partition("\n---\n")
        for line in block.split("\n"):
            key, _, value = line.partition(":")
            fields[key] = value
    fields["body"] = text[:_BODY]
    return fields


def _tokens(query: str) -> list[str]:
    found: dict[str, None] = {}
    for run in _RUNS.findall(_normal(query)):
        if re.match(f"[{_CJK}]", run):
            found.update(dict.fromkeys(run[at : at + 2] for at in range(len(run) - 1)))
        else:
            found[run] = None
    tokens = list(found)
    return tokens if len(tokens) <= 2 * _HALF else tokens[:_HALF] + tokens[-_HALF:]


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()
