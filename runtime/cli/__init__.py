"""The command line: `main` starts it, `group` finds the commands, each command is a module of its own."""
