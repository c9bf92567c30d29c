"""Headless Chromium: a picture of a page, or the page as the browser has read it."""

import shutil
import subprocess
from pathlib import Path

__all__ = ["dom", "picture"]


def picture(page: Path, png: Path, *more: str, width: int, height: int) -> None:
    """Write what a window of that size shows; `more` are arguments of the browser."""
    _chromium(page, *more, f"--window-size={width},{height}", f"--screenshot={png}", "--hide-scrollbars")


def dom(page: Path, *more: str) -> str:
    """Return the page's HTML after its own script has run."""
    return _chromium(page, *more, "--dump-dom")


def _chromium(page: Path, *arguments: str) -> str:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program is not None, "no chromium on the path: apt-get install --no-install-recommends chromium"
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
    apart = (
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={page.parent / 'chromium'}",
    )
    done = subprocess.run(
        [program, *quiet, *apart, *arguments, page.as_uri()], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
