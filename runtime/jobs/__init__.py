"""Work beside the turn: what memory gains while nobody waits for it."""
