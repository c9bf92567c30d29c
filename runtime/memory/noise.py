"""Which notes are noise after a tool was just used: notes on how to call it, which the model has just seen to.

Warnings, owners, places of credentials and workarounds stay. Everything is matched by whole words (a tool called `edit`
is not in "credit"), in Chinese, Japanese, Korean and Thai by substring, since their writing parts no words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final

from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.words import FUNCTION_WORDS

__all__ = ["NOISE_VERSION", "RECENT_TOOLS", "aliases", "is_usage_note", "mentions"]

NOISE_VERSION: Final = 2
"""Changes with what counts as a usage note, since the catalog keeps the answer for each note."""

RECENT_TOOLS: Final = 20
"""Distinct tool names that count, the last ones."""

_USAGE: Final = re.compile(
    # English
    r"\b(?:api (?:docs?|documentation|reference|usage)|usage (?:docs?|documentation|reference|notes?|examples?|of)"
    r"|(?:failed|guessed|invalid|wrong) (?:tool )?(?:calls?|parameters?|arguments?)"
    r"|guess(?:ed|es|ing)? (?:the )?(?:tools?|parameters?|arguments?)"
    r"|(?:parameter|argument|field) mappings?|mcp tools?|(?:parameter|argument|tool|input) schemas?"
    r"|(?:parameters?|arguments?) (?:of|for)"
    r"|tool (?:usage|parameters?|arguments?|calls?)|how to (?:call|invoke)|call(?:ing)? (?:format|convention)s?"
    # German
    r"|api-(?:doku(?:mentation)?|referenz|beschreibung)|aufruf(?:parameter|format|beispiele?|konventionen)"
    r"|(?:werkzeug|tool)-?(?:aufrufe?n?|parametern?)|(?:fehlgeschlagener?|falscher?|geratener?) (?:aufrufe?|parameter)"
    r"|(?:parameter|argumente) (?:von|vom|für|des|der)"
    r"|parameter(?:schema|beschreibung|liste)|feld(?:zuordnung|zuordnungen)"
    # French
    r"|(?:documentation|référence) (?:de l['\u2019])?api|appels? (?:échoués?|erronés?)|format d['\u2019]appel"
    r"|(?:paramètres|arguments|utilisation|appels?) (?:de l['\u2019]outil|d['\u2019]outil)"
    r"|(?:paramètres|arguments) (?:de|du|pour)|schéma (?:des|de) paramètres"
    r"|correspondance des champs"
    # Spanish, Portuguese, Italian
    r"|(?:documentación|referencia) de la api|llamadas? (?:fallidas?|erróneas?)|formato de (?:la )?llamada"
    r"|(?:parámetros|argumentos|uso) de la herramienta"
    r"|(?:parámetros|argumentos) (?:de|del|para)|esquema de parámetros|mapeo de campos"
    r"|(?:documentação|referência) da api|chamadas? (?:falhadas?|erradas?)|formato d[ea] chamada"
    r"|(?:parâmetros|argumentos|uso) da ferramenta"
    r"|(?:parâmetros|argumentos) (?:de|do|da|para)|esquema de parâmetros|mapeamento de campos"
    r"|(?:documentazione|riferimento) (?:dell['\u2019])?api|chiamat[ae] (?:fallit[ae]|errat[ae])"
    r"|formato della chiamata"
    r"|(?:parametri|argomenti|uso) dello strumento"
    r"|(?:parametri|argomenti) (?:di|del|della|per)|schema dei parametri|mappatura dei campi"
    # Russian, Greek
    r"|документация (?:по )?api|(?:неудачн|ошибочн)\w* вызов\w*|формат\w* вызов\w*"
    r"|(?:параметр|аргумент|вызов)\w* инструмент\w*"
    r"|(?:параметры|аргументы) (?:для \w+|[a-z]\w*)|схем\w* параметров|сопоставлени\w* полей"
    r"|τεκμηρίωση (?:του )?api|(?:αποτυχημέν|λανθασμέν)\w* κλήσ\w*|μορφή κλήσησ"
    r"|(?:παράμετροι|ορίσματα|χρήση) (?:του )?εργαλείου"
    r"|(?:παράμετροι|ορίσματα) (?:του|τησ)|σχήμα παραμέτρων|αντιστοίχιση πεδίων"
    # Arabic
    r"|(?:توثيق|مرجع) (?:واجهة|api)|(?:معاملات|وسائط|استخدام|استدعاء) الأداة"
    r"|(?:معاملات|وسائط) (?:ل\w*|[a-z]\w*)|صيغة الاستدعاء|مخطط المعاملات)\b"
    # writing that parts no words
    r"|的参数|参数(?:格式|说明|结构|列表)|工具(?:用法|调用|参数)|调用(?:格式|方式|失败|示例)|接口文档|字段映射"
    r"|の引数|のパラメータ|ツールの(?:使い方|引数|呼び出し)|引数の(?:形式|一覧)"
    r"|呼び出し(?:形式|方法|例)|パラメータ(?:一覧|形式)|apiリファレンス"
    r"|의 (?:매개변수|인수)|도구 ?(?:사용법"
    r"|호출|매개변수)|호출 ?(?:형식|방법|예시)|매개변수 ?(?:형식|스키마|목록)|필드 ?매핑"
    r"|วิธีเรียกใช้|พารามิเตอร์ของ|รูปแบบการเรียก|การใช้เครื่องมือ|เอกสาร ?api"
)
"""Read over case-folded text: without the flag for case, each branch is left at its first letter.

A Greek final sigma is folded as well.
"""
_LASTING: Final = re.compile(
    # English
    r"\b(?:credentials?|secrets?|passwords?|tokens? (?:are|is|live|lie)|escalat(?:e|es|ed|ion|ions)"
    r"|gotchas?|known (?:issues?|bugs?|problems?)|pitfalls?"
    r"|owners?|owned by|ownership|warnings?|caution|caveats?|careful|danger(?:ous)?|never|workarounds?|deprecated"
    r"|rate limits?"
    # German
    r"|warnung|achtung|vorsicht|zugangsdaten|passw[oö]rt(?:er)?|zuständig(?:e[rn]?|keit)?|verantwortlich(?:e[rn]?)?"
    r"|umgehung(?:slösung)?|bekannte[rsn]? (?:fehler|probleme?)|niemals|eskalation"
    # French
    r"|avertissement|identifiants|mots? de passe|responsables?|contournement|problèmes? connus?"
    r"|jamais"
    # Spanish, Portuguese, Italian
    r"|advertencia|cuidado|credenciales|contraseñas?|responsables?|solución provisional|problemas? conocidos?|nunca"
    r"|atenção|credenciais|senhas?|responsáve(?:l|is)|problemas? conhecidos?"
    r"|avvertenza|attenzione|credenziali|responsabil[ei]|soluzione temporanea|problem[ai] not[oi]"
    # Russian, Greek, Arabic
    r"|предупреждение|внимание|осторожно|уч[её]тные данные|парол[ьи]|ответственн\w+|владел\w+|обходн\w+|никогда"
    r"|известн\w+ проблем\w+"
    r"|προειδοποίηση|προσοχή|διαπιστευτήρια|κωδικοί|υπεύθυν\w+|παράκαμψη|γνωστό πρόβλημα|ποτέ"
    r"|تحذير|تنبيه|انتباه|بيانات الاعتماد|كلمات? المرور|المسؤول|مشكلة معروفة|حل بديل|أبدا)\b"
    # writing that parts no words
    r"|凭证|凭据|密钥|密码|负责人|注意|警告|已知问题|变通|绕过|切勿"
    r"|認証情報|パスワード|担当者|責任者|回避策|既知の問題|注意|警告"
    r"|자격 ?증명|비밀번호|담당자|책임자|주의|경고|알려진 문제|우회"
    r"|คำเตือน|ระวัง|รหัสผ่าน|ผู้รับผิดชอบ|ปัญหาที่ทราบ|วิธีเลี่ยง|ห้าม"
)
_LASTING_IN: Final = (
    (("italian",), re.compile(r"\bmai\b")),
    (("french",), re.compile(r"\b(?:attention|prudence)\b")),
    (("spanish", "portuguese"), re.compile(r"\baviso\b")),
    (("portuguese",), re.compile(r"\bcontorno\b")),
)
"""Words that last in these languages alone: `Mai` is a month to a German, `attention` a part of a model in English."""

_MARKED: Final = re.compile(r"\b(?:attention|aviso|prudence)\s?[:!]")
"""So written they warn in any language."""

_GUESSED_BY: Final = 4_000
"""Characters that tell the language of a note."""

_LANGUAGES: Final = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch")
_NO_ACCENTS: Final = dict.fromkeys(range(0x300, 0x370))
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN = "[a-z0-9\u00df-\u024f]"
_SEPARATORS = re.compile(r"[-_ ]+")


def is_usage_note(note: Note) -> bool:
    """Say whether `note` documents how something is called, and tells nothing that lasts beyond that."""
    text = f"{_heads(note)}\n{note.body}".casefold()
    return bool(_USAGE.search(text)) and not _lasts(text)


def aliases(tools: Iterable[str]) -> frozenset[str]:
    """Return the names under which a note may speak of the last 20 distinct tools.

    They are the name itself, what follows the last `::`, and of `mcp__server__tool` what follows `mcp__`, what follows
    the server, and the last part.
    """
    recent = list(dict.fromkeys(reversed([tool.casefold() for tool in tools if tool.strip()])))[:RECENT_TOOLS]
    names: set[str] = set()
    for tool in recent:
        names |= {tool, tool.rsplit("::", 1)[-1]}
        if tool.startswith("mcp__"):
            server_and_tool = tool.removeprefix("mcp__")
            names |= {server_and_tool, server_and_tool.split("__", 1)[-1], tool.rsplit("__", 1)[-1]}
    return frozenset(name for name in names if name)


def mentions(note: Note, names: frozenset[str]) -> bool:
    """Say whether `note` is about one of `names`.

    Its title, description, keywords or usage scenarios hold the name as a whole word (`read_file` also as "read file");
    its body does so as code, in backticks or before a bracket, or with a name that no prose holds.
    """
    if not names:
        return False
    spelled = sorted((_SEPARATORS.sub("[-_ ]?", re.escape(name).replace(r"\-", "-")), name) for name in names)
    words = "|".join(spelling for spelling, _ in reversed(spelled))
    before, after = rf"(?<!{_LATIN})", rf"(?!{_LATIN})"
    if re.search(f"{before}(?:{words}){after}", _heads(note).casefold()):
        return True
    body = note.body.casefold()
    telling = "|".join(spelling for spelling, name in reversed(spelled) if not name.isalnum()) or "(?!)"
    return bool(re.search(rf"`(?:{words})[`(]|{before}(?:(?:{words})\(|(?:{telling}){after})", body))


def _lasts(text: str) -> bool:
    if _LASTING.search(text) or _MARKED.search(text):
        return True
    contested = [languages for languages, words in _LASTING_IN if words.search(text)]
    if not contested:
        return False
    spoken = _languages(text)
    return any(not spoken.isdisjoint(languages) for languages in contested)


def _languages(text: str) -> set[str]:
    """Return the languages that a text in Latin letters may be in: those most of whose function words it holds."""
    words = Counter(_WORD.findall(unicodedata.normalize("NFKD", text[:_GUESSED_BY]).translate(_NO_ACCENTS)))
    signs = {name: sum(words[word] for word in words.keys() & FUNCTION_WORDS[name]) for name in _LANGUAGES}
    most = max(signs.values())
    return {name for name, number in signs.items() if number == most > 0}


def _heads(note: Note) -> str:
    return "\n".join((note.title, note.description, *note.keywords, *note.usage_scenarios))
