"""The errors of the runtime, all of them below `RecallscopeError`.

    RecallscopeError
    ├── ConfigError            you configured something wrongly: key, value, what is allowed, where it came from
    │   └── ConfigFileError    a configuration file is none: which, at what line, what is wrong, what to do
    ├── IllegalMoveError       a caller broke the order of a state machine; nothing changed
    ├── ScriptError            a script for the model server is wrong: where and what is allowed
    ├── NoteError              a file is no readable note: which one and why
    ├── MemoryWriteError       a write to memory was refused: what, where, and what to do
    ├── TransferError          notes cannot be brought out or in: what is wrong with the archive or folder, what to do
    ├── StoreUnavailableError  the catalog or the files of memory could not be read
    ├── ModelError             the world: a model could not be asked, or did not answer well
    │   ├── ModelConnectionError   no answer: refused, reset, name not found, timed out
    │   ├── ModelStatusError       an answer with a status that refuses
    │   └── ModelStreamError       an answer that is no well-formed stream, or stopped early
    ├── ToolError              a tool cannot do what the model asked; the model is told why
    ├── LabError               an experiment could not be carried out, or its figures could not be read
    └── SessionClosedError     the session was disposed; open a new one

"You" errors say what to change; "the world" errors say what happened and whether a retry can help.
"""

from recallscope.runtime.terms import Reason

__all__ = [
    "ConfigError",
    "IllegalMoveError",
    "LabError",
    "MemoryWriteError",
    "ModelConnectionError",
    "ModelError",
    "ModelStatusError",
    "ModelStreamError",
    "NoteError",
    "RecallscopeError",
    "ScriptError",
    "SessionClosedError",
    "StoreUnavailableError",
    "ToolError",
    "TransferError",
]


class RecallscopeError(Exception):
    """The base of every error that this package raises on purpose."""


class ConfigError(RecallscopeError):
    """A configured value is wrong."""

    def __init__(self, *, key: str, value: object, allowed: str, source: str) -> None:
        super().__init__(f"{key} = {value!r} (from {source}) is not allowed: {allowed}")
        self.key = key
        self.source = source


class ConfigFileError(ConfigError):
    """A configuration file cannot be read as one: which, at what line if one is known, what is wrong, what to do."""

    def __init__(self, *, path: str, problem: str, remedy: str) -> None:
        RecallscopeError.__init__(self, f"the configuration file {path} {problem}; {remedy}")
        self.key = "configuration file"
        self.source = path


class IllegalMoveError(RecallscopeError):
    """A state machine was asked for a move that its table does not hold; nothing changed."""

    def __init__(self, *, move: str, state: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{move} is illegal in state {state}; allowed there: {', '.join(allowed) or 'nothing'}")
        self.move = move
        self.state = state


class ScriptError(RecallscopeError):
    """A script for the scripted model server is wrong."""

    def __init__(self, *, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where


class NoteError(RecallscopeError):
    """A file could not be read as a note."""

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class MemoryWriteError(RecallscopeError):
    """A write to memory was refused and nothing was changed."""

    def __init__(self, *, path: str, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path
        self.problem = problem


class TransferError(RecallscopeError):
    """An export or an import as a whole is refused: the archive or folder, what is wrong with it, and what to do."""

    def __init__(self, *, where: str, problem: str, remedy: str) -> None:
        super().__init__(f"{where}: {problem}; {remedy}")
        self.where = where
        self.problem = problem


class StoreUnavailableError(RecallscopeError):
    """Memory could not be searched; unavailable is not empty."""

    reason = Reason.STORE_UNAVAILABLE


class ModelError(RecallscopeError):
    """A model could not be asked or did not answer well; `error_type` is the low-cardinality label."""

    error_type = "model_error"
    retryable = False
    status_code: int | None = None
    retry_after: float | None = None


class ModelConnectionError(ModelError):
    """No answer came from the model server."""

    error_type = "connection_error"
    retryable = True

    def __init__(self, *, url: str, problem: str, timed_out: bool = False) -> None:
        super().__init__(f"no answer from {url}: {problem}; check that the server runs and the address is right")
        if timed_out:
            self.error_type = "timeout"


class ModelStatusError(ModelError):
    """The model server answered with a status that refuses the request."""

    def __init__(self, *, url: str, status_code: int, body: str, retry_after: float | None = None) -> None:
        super().__init__(f"{url} answered {status_code}: {body or 'no text'}{_hint(status_code)}")
        self.status_code = status_code
        self.retry_after = retry_after
        self.error_type = str(status_code)
        self.retryable = _may_pass(status_code)


class ModelStreamError(ModelError):
    """The answer of the model server was no well-formed answer, or it stopped before its end.

    `status_code` is what an error in the middle of a stream says of itself.
    """

    error_type = "stream_error"
    retryable = True

    def __init__(self, *, url: str, problem: str, status_code: int | None = None) -> None:
        super().__init__(f"the answer of {url} is broken: {problem}")
        if status_code is not None:
            self.status_code = status_code
            self.retryable = _may_pass(status_code)


class ToolError(RecallscopeError):
    """A tool cannot do what the model asked; the text tells the model why and what is allowed."""


class LabError(RecallscopeError):
    """An experiment could not be carried out, or its figures could not be read; it says what to do."""


class SessionClosedError(RecallscopeError):
    """A prompt came to a session that was disposed."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session} is closed; open a new one")


def _may_pass(status_code: int) -> bool:
    return status_code in {408, 409, 429} or status_code >= 500  # noqa: PLR2004 - HTTP's server errors


def _hint(status_code: int) -> str:
    hints = {
        401: "; check the API key (OPENAI_API_KEY)",
        403: "; the key has no right to this model",
        404: "; check the base URL (OPENAI_BASE_URL) and the model name",
        429: "; the provider limits the rate",
    }
    return hints.get(status_code, "")
