"""`recallscope model-server`: the scripted model server by itself, on loopback."""

from pathlib import Path

import anyio
import click

from recallscope.runtime.cli.number import Whole
from recallscope.runtime.testing.model_server import ModelServer, serve_forever
from recallscope.runtime.testing.script_parser import load_script

__all__ = ["model_server"]

FAILED = 1


@click.command("model-server")
@click.option(
    "--script",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The script that it answers by, in YAML or JSON.",
)
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=Whole(0, 65_535),
    metavar="N",
    help="The port that it listens on at 127.0.0.1; 0 takes a free one.",
)
def model_server(file: Path, port: int) -> int:
    """Serve the OpenAI chat-completions wire as a script says, until Ctrl-C.

    The base URL, to be given to a client, is the one line on stdout, printed when the server listens.
    """
    script = load_script(file)

    async def serve() -> None:
        await serve_forever(script, port=port, on_ready=_say)

    try:
        anyio.run(serve)
    except OSError as error:
        click.echo(f"recallscope: cannot listen on 127.0.0.1:{port}: {error.strerror or error}", err=True)
        return FAILED
    return 0


def _say(server: ModelServer) -> None:
    click.echo(server.url)
