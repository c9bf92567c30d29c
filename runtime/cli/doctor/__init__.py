"""`recallscope doctor`: whether what an agent needs is there, and whether the settings agree with each other."""
