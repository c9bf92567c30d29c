"""Credentials: what is found, what is left in peace, and that a finding never shows the value."""

import pytest

from recallscope.runtime.memory.credentials import Finding, find_credentials


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("aws-access-key", "key AKIA" + "IOSFODNN7EXAMPLQ"),
        ("github-token", "ghp_" + "a1B2" * 9),
        ("gitlab-token", "glpat-" + "a1B2c3D4" * 3),
        ("private-key", "-----BEGIN OPENSSH " + "PRIVATE KEY-----"),
        ("sk-key", "use sk-" + "proj-a1B2c3D4e5F6g7H8i9"),
        ("slack-token", "xoxb-" + "123456789012-abcdefGHIJ"),
        ("google-api-key", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
        ("stripe-key", "sk_live_" + "a1B2c3D4e5F6g7H8"),
        ("npm-token", "npm_" + "a1B2c3D4e5F6g7H8i9J0" + "a1B2c3D4e5F6g7H8"),
        ("jwt", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJlLXZhbHVl"),
        ("password-in-url", "postgres://app:" + "s3cr3tpw@db/main"),
        ("assigned-secret", 'password = "' + 'Tr0ub4dor&3xyz"'),
        ("assigned-secret", "api_key: " + "9f8a7b6c5d4e3f2a1b0c"),
        ("assigned-secret", "The token is " + "Zx81kQp0Lm22vN"),
    ],
)
def test_a_credential_is_found_by_rule_and_line(rule: str, line: str) -> None:
    """Each rule finds its kind, and the finding is the rule and the line alone."""
    assert find_credentials(f"first line\n{line}\nlast") == (Finding(rule, 2),)


@pytest.mark.parametrize(
    "line",
    [
        "The password is in the team vault.",
        "password: <your password here>",
        "api_key = ${OPENAI_API_KEY}",
        "token: os.environ['GH_TOKEN']",
        "Use skating-related words; sk-learn is a library",
        "secret: see 1Password, entry staging",
        "the access key lies in ~/.aws/credentials",
        "https://user@example.com/path",
        "postgres://app:<password>@db",
        "tokens: 25000 tokens are the budget",
        "commit 9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f00",
        "密码在保险库里",
        "password policy: at least twelve characters",
    ],
)
def test_ordinary_talk_of_secrets_is_left_in_peace(line: str) -> None:
    """Where a secret is kept is worth remembering and no credential."""
    assert find_credentials(line) == ()
