"""Memory that two processes change while a third recalls from it: `tests/e2e/soak.py`, for a few seconds."""

import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).with_name("soak.py")


def test_changes_of_two_processes_are_never_delivered_stale_and_never_lost() -> None:
    """No stale delivery, no failed recall, no lost note, no line on stderr, and at the end the catalog of a fresh scan.

    The seed and the counts are printed; `python tests/e2e/soak.py SECONDS SEED` makes the same changes again.
    """
    done = subprocess.run(
        [sys.executable, str(SOAK), "5"], capture_output=True, text=True, timeout=100, check=False, cwd=SOAK.parent
    )
    sys.stdout.write(done.stdout)

    assert (done.returncode, done.stderr) == (0, "")
