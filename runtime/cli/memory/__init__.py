"""`recallscope memory`: looking after notes from the command line; each module holds the commands of one group."""
