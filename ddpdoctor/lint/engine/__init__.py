"""What the rules stand on: files, names, call graph, rank taint, guards. Imports no torch."""
