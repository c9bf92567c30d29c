"""Credentials: what is found, what is left in peace, that a finding never shows the value, and what a scan costs."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.credentials import OVERLAP, PIECE, Finding, find_credentials, pieces

MIXED = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ4bT7q"
HEX = "9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f00"
UUID = "9f8a7b6c-5d4e-3f2a-1b0c-9d8e7f6a5b4c"


def mixed(length: int) -> str:
    """Return what looks random, of this length."""
    return (MIXED * (length // len(MIXED) + 1))[:length]


def hexadecimal(length: int) -> str:
    """Return hexadecimal digits that look random."""
    return (HEX * (length // len(HEX) + 1))[:length]


# The beginnings stand apart from the rest, so that this file is no finding of a scanner itself.
CREDENTIALS = [
    ("aws-access-key", "key AKIA" + "IOSFODNN7EXAMPLQ"),
    ("aws-access-key", "aws_secret_access_key" + " = '" + mixed(40) + "'"),
    ("assigned-secret", "AWS_SESSION_TOKEN" + "=" + mixed(200)),
    ("github-token", "ghp_" + "a1B2" * 9),
    ("github-token", "ghs_" + mixed(36)),
    ("vendor-token", "github_pat_" + mixed(22) + "_" + mixed(59)),
    ("gitlab-token", "glpat-" + "a1B2c3D4" * 3),
    ("slack-token", "xoxb-" + "123456789012-123456789012-abcdefGHIJ1234"),
    ("slack-token", "https://hooks.slack.com/services/" + "T0AB12CD3/B0AB12CD34E/" + mixed(24)),
    ("vendor-token", "xapp-" + "1-A0AB12CD3-1234567890123-" + hexadecimal(64)),
    ("stripe-access-key", "sk_live_" + mixed(24)),
    ("vendor-token", "sk_test_" + mixed(24)),
    ("vendor-token", "whsec_" + mixed(32)),
    ("private-key", "-----BEGIN OPENSSH " + "PRIVATE KEY-----"),
    ("private-key", "-----BEGIN ENCRYPTED " + "PRIVATE KEY-----"),
    ("private-key", "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----"),
    ("age-secret-key", "AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 6),
    ("json-web-token", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJlLXZhbHVl"),
    ("password-in-url", "postgres://app:" + "s3cr3tpw@db/main"),
    ("password-in-url", "mongodb+srv://root:" + mixed(16) + "@cluster0.ab12c.mongodb.net/prod"),
    ("password-in-url", "redis://:" + mixed(20) + "@cache.internal:6379/0"),
    ("password-in-url", "https://deploy:" + mixed(14) + "@git.corp.net/repo.git"),
    ("assigned-password", "Server=db1;Database=app;User Id=sa;Password=" + "abC!x9Qz7;"),
    ("azure-storage-account-access-key", "AccountKey=" + (mixed(86) + "==") + ";EndpointSuffix=core.windows.net"),
    ("azure-client-secret", "it is abc8Q~" + mixed(34)),
    ("signed-url", "https://acc.blob.core.windows.net/c?sv=2022-11-02&sig=" + mixed(40) + "%3D"),
    ("vendor-token", "npm_" + "a1B2c3D4e5F6g7H8i9J0" + "a1B2c3D4e5F6g7H8"),
    ("assigned-secret", "//registry.example.net/:_authToken=" + UUID),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + mixed(150)),
    ("vendor-token", "rubygems_" + hexadecimal(48)),
    ("vendor-token", "dckr_pat_" + mixed(27)),
    ("openai-token", "sk-" + mixed(20) + "T3BlbkFJ" + mixed(20)),
    ("vendor-token", "use sk-" + "proj-a1B2c3D4e5F6g7H8i9"),
    ("vendor-token", "sk-" + "ant-api03-" + mixed(93) + "AA"),
    ("vendor-token", "sk-" + "or-v1-" + hexadecimal(64)),
    ("vendor-token", "gsk_" + mixed(52)),
    ("vendor-token", "hf_" + mixed(34)),
    ("google-api-key", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    ("vendor-token", "GOCSPX-" + mixed(28)),
    ("twilio-api-key", "SK" + hexadecimal(32)),
    ("sendgrid-api-key", "SG." + mixed(22) + "." + mixed(43)),
    ("vendor-token", "key-" + hexadecimal(32)),
    ("mailchimp-access-key", hexadecimal(32) + "-us12"),
    ("telegram-bot-token", "110201543:" + "AAH" + mixed(32)),
    ("discord-bot-token", "MT" + mixed(22) + ".G1a2B3." + mixed(38)),
    ("discord-webhook", "https://discord.com/api/webhooks/123456789012345678/" + mixed(68)),
    ("vendor-token", "dop_v1_" + hexadecimal(64)),
    ("vendor-token", "shpat_" + hexadecimal(32)),
    ("vendor-token", "hvs." + mixed(95)),
    ("vendor-token", "glsa_" + mixed(32) + "_1a2b3c4d"),
    ("vendor-token", "ATATT3xFfGF0" + mixed(180)),
    ("vendor-token", "dapi" + hexadecimal(32)),
    ("vendor-token", "lin_api_" + mixed(40)),
    ("otp-secret", "otpauth://totp/x:me?secret=" + "JBSWY3DPEHPK3PXPJBSWY3DP" + "&issuer=x"),
    ("authorization-header", "Authorization: Bearer " + mixed(40)),
    ("authorization-header", "Authorization: Basic " + "YWRtaW46VHIwdWI0ZG9yMw=="),
    ("password-on-command-line", "curl -u admin:" + "S3cretPass99 https://x.example.org/"),
    ("password-on-command-line", "sshpass -p " + "Summer2024 ssh root@h"),
    ("assigned-password", 'password = "' + 'Tr0ub4dor&3xyz"'),
    ("assigned-password", "password: " + "hunter2"),
    ("assigned-password", "Password for staging: " + "Tr0ub4dor3"),
    ("assigned-password", "**Password:** `" + "Qwerty!2345`"),
    ("assigned-password", "DB_PASSWORD=" + "correcthorse9battery"),
    ("assigned-password", "The password is " + "Zx81kQp0Lm"),
    ("assigned-password", "Passwort: " + "Sommer2024!"),
    ("assigned-password", "密码\uff1a" + "Abc12345xyz"),
    ("assigned-password", "pwd: " + "s3cr3t!Pa55"),
    ("password-on-command-line", "mysql -u root -p" + "S3cretPw9 shop"),
    ("password-on-command-line", "mysqldump -h db -p" + "S3cretPw9 shop"),
    ("password-on-command-line", "redis-cli -h cache -a " + "S3cretPw9 ping"),
    ("assigned-password", "PASS=" + "S3cretPw9"),
    ("assigned-password", "SMTP_PASS=" + "hunter2secret"),
    ("assigned-password", "pw: " + "S3cretPw9"),
    ("assigned-password", "| password | " + "Soleil2024! |"),
    ("assigned-password", "| **Passwort**   | `" + "Soleil2024!` |"),
    ("password-before-host", "connect as app:" + "Secret1!@db.internal"),
    ("login-and-password", "login: admin / " + "S3cretPw9x"),
    ("login-and-password", "Credentials: `admin` / `" + "S3cretPw9x`"),
    ("assigned-password", "パスワードは" + "S3cretPw9xです"),
    ("assigned-password", "パスワードは " + "S3cretPw9x です"),
    ("assigned-password", "비밀번호는 " + "S3cretPw9x 입니다"),
    ("assigned-password", "Parole d'ordine: " + "Sole2024!"),
    ("assigned-password", "Parola d\u2019ordine: " + "Sole2024!"),
    ("bearer-token", "curl with Bearer " + mixed(32)),
    ("assigned-passphrase", '"passphrase": ' + '"correct horse battery staple"'),
    ("assigned-passphrase", '"passphrase": ' + '"four words or more"'),
    ("assigned-password", "pass\u200bword: hunt" + "\u2060er2"),
    ("assigned-password", "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1a " + "\uff48unter2"),
    ("github-token", "g\u00adhp_" + "a1B2\u200d" * 9),
    ("assigned-secret", "api_key: " + "9f8a7b6c5d4e3f2a1b0c"),
    ("assigned-secret", "The token is " + "Zx81kQp0Lm22vN"),
    ("assigned-secret", "HEROKU_API_KEY=" + UUID),
]


@pytest.mark.parametrize(("rule", "line"), CREDENTIALS)
def test_a_credential_is_found_by_rule_and_line(rule: str, line: str) -> None:
    """Each kind is found, and the finding is the rule and the line alone."""
    assert find_credentials(f"first line\n{line}\nlast") == (Finding(rule, 2),)


@pytest.mark.parametrize(
    "line",
    [
        "The password is in the team vault.",
        "the password lies in the vault",
        "pass=True",
        "pass=pass1",
        "pw: ask Anna",
        "PASS: test_login2 and 14 others",
        "PASS: tests12 of 14",
        "bypass=route66b",
        "mysql -u root -p shop",
        "mysql -h db1 -P 3306 -p$DB_PASS shop",
        "redis-cli -a $REDIS_PASS ping",
        "mkdir -p build2/out",
        "| password | varchar(255) |",
        "| password | in the vault, entry 2024 |",
        "| password | Argon2id |",
        "image app:v1.2.3-rc1@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "mailto:maria.s2x@example.org",
        "write to Contact:maria.b2@example.org",
        "npm:react@18",
        "login: admin / ask Anna",
        "login: users/Create2FA",
        "user: admin / role: Editor2",
        "パスワードは90日ごとに変更する",
        "パスワードは8文字以上、英数字を含む",
        "パスワードは1Password2024に保管",
        "Parole d'ordine: chiedere ad Anna",
        "Bearer <token>, sent in the header of every request",
        "a bearer token of the service-account-of-the-billing-team",
        '"passphrase": "ask the ops team"',
        "passphrase: four words or more",
        "Die Datei\u00ad namen sind ﬁx … und ½",
        "password: <your password here>",
        "password: changeme",
        "password: ********",
        'password: "{{ vault_db_password }}"',
        "password = getpass.getpass()",
        "Password for staging: ask Maria, or 1Password entry staging",
        "Password: rotated on 2026-03-01 by ops",
        "Password is rotated2weekly by Terraform",
        "password: see-1password-item-4711",
        "password policy: at least twelve characters",
        "Use `password_hash` with argon2, never md5",
        "api_key = ${OPENAI_API_KEY}",
        "api_key_env: ANTHROPIC_API_KEY",
        "set OPENAI_API_KEY and OPENAI_BASE_URL before the run",
        "export GITHUB_TOKEN=$(gh auth token)",
        "API key location: /etc/recallscope/keys/openai.key",
        "token: os.environ['GH_TOKEN']",
        "token: stored-in-vault-kv2",
        "tokens: 25000 tokens are the budget",
        "max_tokens: 8192",
        "the token is JWT-based, RS256 signed",
        "Use skating-related words; sk-learn is a library",
        "secret: see 1Password, entry staging",
        "secret: kubernetes/prod/app-secrets-v2",
        "secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf",
        "the access key lies in ~/.aws/credentials",
        "private key: kept in the HSM, slot 3",
        "PKCS8 private keys start with BEGIN PRIVATE KEY",
        "AKIA-prefixed ids are access keys, ghp_ tokens are classic",
        "https://user@example.com/path",
        "postgres://app:<password>@db",
        "postgres://$USER:$PASS@db/app",
        "mongodb://user:password@localhost/test",
        "git clone git@github.com:org/repo.git",
        "curl -u $USER:$PASS https://x",
        "Authorization: Bearer <token>",
        "commit 9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f00",
        "UUID 123e4567-e89b-12d3-a456-426614174000 is the tenant",
        "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "ssh key fingerprint SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDXiNcaGFDWb6RmiCA",
        "APACHE2LICENSE covers it",
        "密码在保险库里",
        "Das Passwort liegt im Tresor, Eintrag Staging2024",
        "Le mot de passe est dans Vault sous secret/app",
    ],
)
def test_ordinary_talk_of_secrets_is_left_in_peace(line: str) -> None:
    """Where a secret is kept, what it is called and how it is used are worth remembering and no credential."""
    assert find_credentials(line) == ()


def test_what_is_hidden_is_found_on_the_line_where_it_stands() -> None:
    """Invisible characters and wide letters move no line, also in a text of many pieces."""
    text = "\u200b\uff21\u2026\n" * 3_000 + "\u200bpass\u200bword: hunter2\n" + "\ufdfa\n" * 50
    assert find_credentials(text) == (Finding("assigned-password", 3_001),)


def test_every_line_with_a_credential_is_named_once() -> None:
    """Two kinds on one line are one finding; the lines come in order, at most twenty."""
    line = "ghp_" + "a1B2" * 9 + " AKIA" + "IOSFODNN7EXAMPLQ"
    assert find_credentials(f"{line}\n\n{line}") == (Finding("aws-access-key", 1), Finding("aws-access-key", 3))
    assert [finding.line for finding in find_credentials(f"{line}\n" * 100)] == list(range(1, 21))


@pytest.mark.parametrize("before", [0, 1, PIECE - 20, PIECE, 10 * PIECE + 7, 1_000_000])
def test_a_credential_in_a_huge_line_is_found_wherever_it_stands(before: int) -> None:
    """A line of a megabyte is scanned to its end: a piece's border hides nothing."""
    text = "x\n" + "ab " * (before // 3) + " ghp_" + "a1B2" * 9 + " c" * 3_000
    assert find_credentials(text) == (Finding("github-token", 2),)


def test_a_credential_at_the_end_of_many_lines_is_found() -> None:
    """So is the last one of 100,000 lines."""
    assert find_credentials("a b\n" * 99_999 + "glpat-" + mixed(20)) == (Finding("gitlab-token", 100_000),)


@given(st.lists(st.integers(0, 3 * PIECE) | st.integers(0, 80), max_size=40))
def test_the_cost_grows_with_the_text_and_nothing_is_passed_over(lengths: list[int]) -> None:
    """Pieces are bounded and overlap within a line; together they are no more than twice the text, and all of it."""
    lines = ["".join(chr(0x4E00 + (at * 7 + length) % 5_000) for at in range(length)) for length in lengths]
    text = "\n".join(lines)
    cut = list(pieces(text))
    assert all(len(piece) <= PIECE for _, piece in cut)
    assert sum(len(piece) for _, piece in cut) <= 2 * len(text)
    assert len(cut) <= 2 * len(text) // (PIECE - OVERLAP) + len(lines) // 2 + 2
    seen: dict[int, list[str]] = {}
    for first, piece in cut:
        for number, line in enumerate(piece.split("\n"), start=first):
            seen.setdefault(number, []).append(line)
    for number, line in enumerate(lines, start=1):
        parts = seen.get(number, [""])
        assert parts[0] + "".join(part[OVERLAP:] for part in parts[1:]) == line


def test_the_library_is_imported_by_writes_alone() -> None:
    """Opening and searching memory imports neither the rules nor their library."""
    program = (
        "import sys, recallscope.runtime.memory.memory, recallscope.runtime.memory.edit;"
        "print([name for name in ('detect_secrets', 'requests') if name in sys.modules])"
    )
    got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert got.stdout == "[]\n"
