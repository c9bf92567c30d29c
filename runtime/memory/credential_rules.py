"""The rules of the credential scan: those of `detect-secrets`, and our own for what it does not find.

Of the library's detectors those are used that know a secret by its own form. Left out are those that go by the entropy
of any quoted text, by names without looking at the value, and by addresses of machines (they take notes about commits,
policies and hosts for secrets), the one for private keys (it takes the words BEGIN PRIVATE KEY for one, and misses
encrypted ones), and the ones for npm and for passwords in addresses (their time grows with the square of a line).
Nothing of the library that asks the network whether a secret works is called. Importing this module imports it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import cast

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

__all__ = ["Rule", "all_rules"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of credential: `forms` say cheaply that it may stand in a text, `values` yield it from one line."""

    name: str
    forms: tuple[re.Pattern[str], ...]
    values: Callable[[str], Iterator[str]]
    believes: Callable[[str], bool]

    def may_stand_in(self, piece: str) -> bool:
        """Tell whether one of the lines of `piece` may hold such a credential."""
        return any(form.search(piece) for form in self.forms)

    def stands_in(self, line: str) -> bool:
        """Tell whether `line` looks like it holds such a credential."""
        return any(self.believes(value) for value in self.values(line))


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, those that name their kind best first; made once."""
    return (*_of_the_library(), *_of_our_own())


def _of_the_library() -> Iterator[Rule]:
    """Make rules of the library's detectors; what one of them believes too easily is looked at once more."""
    detectors: tuple[tuple[RegexBasedDetector, Callable[[str], bool]], ...] = (
        (AWSKeyDetector(), _anything),
        (GitHubTokenDetector(), _anything),
        (GitLabTokenDetector(), _anything),
        (SlackDetector(), _anything),
        (StripeDetector(), _anything),
        (OpenAIDetector(), _anything),
        (PypiTokenDetector(), _anything),
        (SendGridDetector(), _anything),
        (TwilioKeyDetector(), _anything),
        (TelegramBotTokenDetector(), _anything),
        (DiscordBotTokenDetector(), _anything),
        (MailchimpDetector(), _anything),
        (SquareOAuthDetector(), _anything),
        (AzureStorageKeyDetector(), _anything),
        (CloudantDetector(), _looks_random),
        (IbmCloudIamDetector(), _looks_random),
        (IbmCosHmacDetector(), _looks_random),
        (SoftlayerDetector(), _looks_random),
        (ArtifactoryDetector(), _mixes_cases_and_digits),  # its form alone also fits APACHE2LICENSE
        (JwtTokenDetector(), _anything),
    )
    for detector, believes in detectors:
        name = str(detector.secret_type).lower().replace(" ", "-")
        library = cast("Iterable[re.Pattern[str]]", detector.denylist)  # pyright: ignore[reportUnknownMemberType] - bare Pattern
        # In a piece of many lines the beginning and the end of each line count.
        forms = tuple(re.compile(form.pattern, form.flags | re.MULTILINE) for form in library)
        yield Rule(name, forms, detector.analyze_string, believes)


def _of_our_own() -> Iterator[Rule]:
    """Make the rules for what the library does not find; a group holds the value, else the whole match is it."""
    for name, pattern, believes in (
        ("private-key", r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----", _anything),
        ("vendor-token", rf"(?<![0-9A-Za-z_-])(?:{'|'.join(_VENDOR_PREFIXES)})([0-9A-Za-z_=.+/-]{{16,}})", _is_token),
        ("google-api-key", r"(?<![0-9A-Za-z_-])AIza[0-9A-Za-z_-]{35}", _anything),
        ("age-secret-key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}", _anything),
        ("azure-client-secret", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])", _anything),
        ("signed-url", r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=([0-9A-Za-z%+/=_-]{20,})", _no_placeholder),
        ("otp-secret", r"otpauth://[^\s]{0,200}[?&]secret=([A-Z2-7]{16,})", _anything),
        ("discord-webhook", r"discord(?:app)?\.com/api/webhooks/\d{15,20}/([\w-]{40,})", _anything),
        ("password-in-url", r"://[^\s/:@]{0,64}:([^\s/:@]{6,200})@[\w.\[-]", _is_password),
        ("authorization-header", r"(?i)\bauthorization[\"']?\s?[:=]\s?[\"']?\w{3,10}\s([\w.~+/=-]{12,})", _is_token),
        (
            "password-on-command-line",
            r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[\w.@-]+:([^\s\"']{4,})",
            _is_password,
        ),
        ("password-on-command-line", r"\bsshpass\s+-p\s?[\"']?([^\s\"']{4,})", _is_password),
        ("bearer-token", r"(?i)\bbearer\s{1,4}[\"'`]?([\w.~+/=-]{32,})", _is_token),
        (
            "password-on-command-line",
            rf"\b(?:mysql|mariadb)\w{{0,20}}{_OPTION}-p[\"']?([^\s\"'`]{{4,200}})",
            _is_password,
        ),
        (
            "password-on-command-line",
            rf"\bredis-cli\b{_OPTION}(?:-a|--pass)[ =][\"']?([^\s\"'`]{{4,200}})",
            _is_password,
        ),
        ("password-before-host", _BEFORE_HOST, _is_bare_password),
        ("login-and-password", _LOGIN, _is_strong_password),
        ("assigned-password", r"(?i)(?<![a-z0-9])pass[\"'`]?\s?=\s?[\"'`]?([^\s\"'`,;]{6,200})", _is_password),
        ("assigned-password", rf"(?i)(?<![a-z0-9])(?:pass|pw){_AFTER_SHORT}", _is_strong_password),
        ("assigned-password", rf"(?i)(?:{_NAMES_OF_PASSWORDS}|\bpw){_IN_A_TABLE}", _is_strong_password),
        ("assigned-password", rf"(?:{_CJK_NAMES}){_CJK_STATED}", _is_strong_password),
        ("assigned-passphrase", _IN_FOUR_WORDS, _is_passphrase),
        ("assigned-password", rf"(?i)(?:{_NAMES_OF_PASSWORDS}){_ASSIGNED}{_VALUE.format(6)}", _is_password),
        ("assigned-password", rf"(?i)(?:{_NAMES_OF_PASSWORDS}){_STATED}{_VALUE.format(8)}", _is_strong_password),
        ("assigned-secret", rf"(?i)(?:{_NAMES_OF_KEYS}){_ASSIGNED}{_VALUE.format(8)}", _looks_random),
        ("assigned-secret", rf"(?i)(?:{_NAMES_OF_KEYS}){_STATED}{_VALUE.format(12)}", _looks_random),
    ):
        form = re.compile(pattern)
        yield Rule(name, (form,), _found_by(form), believes)


_VENDOR_PREFIXES = (
    # models
    *("sk-(?=[A-Za-z_-]*[0-9])", "gsk_", "xai-", "pplx-", "hf_", "r8_", "nvapi-", "tvly-", "lsv2_[a-z]{2}_", "fw_"),
    # code, packages and containers
    *("github_pat_", "gh[pousr]_", "glpat-", "npm_", "rubygems_", "cio", "dckr_pat_", "ATATT3", "ATCTT3", "sgp_"),
    # cloud and hosting
    *(
        "dop_v1_",
        "doo_v1_",
        "dor_v1_",
        "GOCSPX-",
        "ya29\\.",
        "dapi(?=[0-9a-f]{32})",
        "hvs\\.",
        "hvb\\.",
        "sbp_",
        "nf[pc]_",
    ),
    *("fo1_", "tskey-[a-z]+-", "EAAA", "pul-(?=[0-9a-f]{40})", "dp\\.(?:pt|st|ct|sa)\\.", "rnd_"),
    # payment and shops
    *("[rs]k_(?:live|test)_", "whsec_", "shp(?:at|ss|ca|pa)_"),
    # talk, work and monitoring
    *(
        "xapp-",
        "xox[abeoprs]-",
        "lin_api_",
        "ntn_",
        "secret_(?=[0-9A-Za-z]{43})",
        "pat-(?:na|eu)\\d-",
        "figd_",
        "PMAK-",
    ),
    *("glsa_", "glc_", "NRAK-", "NRII-", "sntrys_", "sntryu_", "dt0c01\\.", "key-(?=[0-9a-f]{32})"),
)
"""How the tokens of services begin that the library does not know, or knows in another form."""

_NAMES_OF_PASSWORDS = (
    r"password|passwd|passphrase|pwd|passwort|kennwort|mot de passe|contrase\u00f1a|senha|wachtwoord|has\u0142o"
    r"|parol[ae] d['\u2019]ordine|palavra-passe"
    r"|\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6\u7801|\u5bc6\u78bc"
    r"|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638"
)
_NAMES_OF_KEYS = (
    r"secret|token|api[ _-]?key|access[ _-]?key|auth[ _-]?key|private[ _-]?key|signing[ _-]?key|credential"
    r"|account[ _-]?key|shared[ _-]?access[ _-]?key|client[ _-]?id[ _-]?secret"
)
# Behind the name: the rest of an identifier, "for staging", and what Markdown, YAML and program text put around it.
_NAME_ENDS = (
    r"\w{0,40}(?:\s(?:for|of|on|to|in|at|f\u00fcr|von|pour|de)(?:\s[\w.@/-]{1,40}){1,3})?[\"'`*_)\]]{0,4}\s{0,4}"
)
_ASSIGNED = _NAME_ENDS + r"(?::=|=>|={1,2}|:|\uff1a)\s{0,4}"
_STATED = _NAME_ENDS + r"(?:\b(?:is|was|ist|lautet|est|es|\u00e8)\b|\u662f|\u4e3a|\u70ba)\s{0,4}"
_VALUE = r"[*_]{{0,2}}\s{{0,2}}[\"'`]?([^\s\"'`,;]{{{},200}})"

_OPTION = r"[^\n]{0,200}?\s"
_BEFORE_HOST = (
    r"(?<![\w:/@.-])(?!(?i:e-?mail|mail(?:to)?|cc|from|to|sip|xmpp|npm|git):)"
    r"[\w.-]{1,64}:([^\s/:@]{6,100})@(?!sha\d)[A-Za-z0-9\[]"
)
_LOGIN = (
    r"(?i)\b(?:log-?in|credentials?|creds|user(?:name)?|account|zugang(?:sdaten)?|anmeldung|identifiants?|acceso|accesso)"
    r"[\"'`*_]{0,4}\s{0,4}[:=]\s{0,4}[*_]{0,2}[\"'`]?[\w.@-]{1,64}[\"'`]?\s{1,4}/\s{1,4}[\"'`]?([^\s\"'`,;]{6,100})"
)
_AFTER_SHORT = r"[\"'`*_]{0,4}\s{0,4}[:=\uff1a]\s{0,4}[*_]{0,2}\s{0,2}[\"'`]?([^\s\"'`,;]{6,200})"
_IN_A_TABLE = r"[\"'`*_]{0,4}\s{0,40}\|\s{0,40}[*_]{0,2}[\"'`]?([^\s\"'`|]{6,200})"
_CJK_NAMES = r"\u5bc6\u7801|\u5bc6\u78bc|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638"
# Only what stands in ASCII is the value: no blank parts it from the words around it.
_CJK_STATED = r"\s?(?:\u306f|\u304c|\ub294|\uc740|\u662f|\u4e3a|\u70ba)\s{0,4}[\"'`\u300c\u201c]?([!-~]{6,200})"
_IN_FOUR_WORDS = (
    r"(?i)pass[ _-]?phrase[\"'`*_]{0,4}\s{0,4}[:=\uff1a]\s{0,4}[*_]{0,2}"
    r"[\"'`]([^\W\d_]{2,20}(?:[ _-][^\W\d_]{2,20}){3,15})[\"'`]"
)
_TELLS_A_PLACE = re.compile(
    r"\b(?:ask|see|in|on|at|the|is|are|of|from|by|with|your|lies|stored|kept|vault|must|should|needs?|never|not)\b",
    re.IGNORECASE,
)

_PLACEHOLDER = re.compile(
    r"^[<$%{\[(*&]|^(?:x+|\*+|\.+|_+|-+)$|^(?:null|none|true|false|undefined)$|^/|^~|^\./|^arn:|^(?-i:[A-Z][A-Z0-9]*_[A-Z0-9_]+)$"
    r"|^\w+(?:\.\w+)*[(\[]|\$\{|\{\{|://|example|change-?me|placeholder|redacted|your[_-]|env[.:(]|environ|vault|1password",
    re.IGNORECASE,
)
_ORDINARY_PART = re.compile(
    r"[a-z]{0,40}[a-z]{2}\d{0,4}|[A-Z][a-z]{2,40}\d{0,4}|[A-Z]{2,12}\d{0,4}|\d{0,8}|v\d{1,4}|[a-z]"
    r"|base(?:32|58|64)\w*|sha\d+\w*|k8s|\d[a-z]{4,12}",
)
_ORDINARY_WORD = re.compile(
    r"(?:md|sha|aes|rsa|hmac|bcrypt|scrypt|argon|ed|rs|hs|es|ps|utf|oauth|base|http|ipv|pbkdf|hs|kdf|x)\d+\w{0,8}",
    re.IGNORECASE,
)
_RANDOM_BITS = 3.0
"""Bits per character above which a value is taken for a random one, if it also mixes kinds of characters."""

_SHORTEST_NUMBER = 6
_KINDS = tuple(re.compile(kind) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[^\w\s]|_", r"[^\W\d_a-zA-Z]"))
_LETTERS, _DIGITS = re.compile(r"[^\W\d_]"), re.compile(r"\d")


def _found_by(form: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    group = 1 if form.groups else 0
    return lambda line: (match[group] for match in form.finditer(line))


def _anything(_value: str) -> bool:
    return True


def _no_placeholder(value: str) -> bool:
    return _PLACEHOLDER.search(value) is None


def _is_token(value: str) -> bool:
    """Tell a token from words: it mixes letters and digits, or is long and mixes cases."""
    return _no_placeholder(value) and not _is_a_name(value) and _kinds(value) > 1 and _bits(value) >= _RANDOM_BITS


def _is_password(value: str) -> bool:
    """Tell what a person would take for a password from the words, paths and names that say where one is kept."""
    value = value.rstrip(".):]>}|\\")
    if not _no_placeholder(value) or _is_a_name(value):
        return False
    if value.isdigit():
        return len(value) >= _SHORTEST_NUMBER
    return _DIGITS.search(value) is not None and _LETTERS.search(value) is not None


def _is_strong_password(value: str) -> bool:
    return _is_password(value) and _kinds(value) > 2  # noqa: PLR2004 - "is rotated2weekly" is no password


def _is_bare_password(value: str) -> bool:
    """Tell a password before a host from the rest of an address: a sign no mail address has, or all of aA1."""
    return _is_strong_password(value) and (
        re.search(r"[^\w.+-]", value) is not None or all(kind.search(value) for kind in _KINDS[:3])
    )


def _is_passphrase(value: str) -> bool:
    return _no_placeholder(value) and _TELLS_A_PLACE.search(value) is None


def _looks_random(value: str) -> bool:
    value = value.rstrip(".):]>}|\\")
    if not _no_placeholder(value) or _is_a_name(value) or _DIGITS.search(value) is None:
        return False
    return _kinds(value) > 1 and _bits(value) >= min(_RANDOM_BITS, math.log2(len(value)) - 0.5)


def _mixes_cases_and_digits(value: str) -> bool:
    return all(kind.search(value.strip(' \t"=:')[3:]) for kind in _KINDS[:3])


def _is_a_name(value: str) -> bool:
    """Tell whether `value` is made of ordinary words: `kubernetes/prod/app-secrets-v2`, `sha256`, `2026-03-01`."""
    parts = [part for part in re.split(r"[-/_.:#@+|=]", value) if part]
    if len(parts) < 2:  # noqa: PLR2004 - hunter2 is a word and a number, too
        return _ORDINARY_WORD.fullmatch(value) is not None
    return all(_ORDINARY_PART.fullmatch(part) or _ORDINARY_WORD.fullmatch(part) for part in parts)


def _kinds(value: str) -> int:
    return sum(bool(kind.search(value)) for kind in _KINDS)


def _bits(value: str) -> float:
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
