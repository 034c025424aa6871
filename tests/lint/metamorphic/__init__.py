"""Names and shapes decide nothing: the same program, told otherwise, gets the same findings."""
