"""Static rules over the user's source: DDP bugs before they run. Imports no torch."""
