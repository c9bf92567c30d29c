"""The table of the commands below `recallscope memory`; a command's module is imported when it is invoked."""

from recallscope.runtime.cli.group import LazyCommand, LazyGroup

__all__ = ["MEMORY_COMMANDS", "memory"]

_PACKAGE = "recallscope.runtime.cli.memory"

MEMORY_COMMANDS = {
    "list": LazyCommand(f"{_PACKAGE}.looking:list_", "List notes, the newest first."),
    "show": LazyCommand(f"{_PACKAGE}.looking:show", "Show one note, its version, and what recall knows of it."),
    "search": LazyCommand(f"{_PACKAGE}.looking:search", "Search as a recall does, without any model."),
    "add": LazyCommand(f"{_PACKAGE}.writing:add", "Write a new note, from flags, stdin or an editor."),
    "edit": LazyCommand(f"{_PACKAGE}.writing:edit", "Change a note, with flags or in an editor."),
    "remove": LazyCommand(f"{_PACKAGE}.removing:remove", "Erase notes, and say what was erased."),
    "pin": LazyCommand(f"{_PACKAGE}.writing:pin", "Pin a note, or take its pin away."),
    "index": LazyCommand(f"{_PACKAGE}.upkeep:index", "Bring the catalog up to the files now, and say what changed."),
    "check": LazyCommand(f"{_PACKAGE}.upkeep:check", "Say everything that is wrong with the notes."),
    "stats": LazyCommand(f"{_PACKAGE}.upkeep:stats", "Count the notes by scope, type, source and age."),
    "enrich": LazyCommand(
        f"{_PACKAGE}.enrich:enrich", "Let the small model write in which other words one might ask for each note."
    ),
    "export": LazyCommand(f"{_PACKAGE}.moving:export", "Copy notes out, into an archive or a folder."),
    "import": LazyCommand(f"{_PACKAGE}.moving:import_", "Bring notes in, from an export or a folder of Markdown."),
}

memory = LazyGroup(
    name="memory",
    table=MEMORY_COMMANDS,
    help="Look after notes: list, search, write, remove, check, export and import them.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
