"""Recording rules and alerts as data; `files` writes the rule files that stand beside this module."""
