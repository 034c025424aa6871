"""Questions about what a program was seen to do, which rules share."""
