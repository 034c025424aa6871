"""Checkpoint, EMA and resume."""
