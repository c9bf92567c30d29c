"""An embedding model is configured, and what it needs is not there."""

import subprocess
import sys
from pathlib import Path


def test_without_numpy_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    """The command refuses at once, names the key and the extra, and shows no traceback."""
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from recallscope.runtime.cli.main import main\n"
        "sys.exit(main(['--set', 'model.embedding=vectors', 'recall', 'anything']))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        check=False,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "recallscope: model.embedding = 'vectors' (from flag --set) is not allowed: "
        "it needs the extra semantic: pip install 'recallscope[semantic]'\n"
    )
