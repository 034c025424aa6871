"""Where a torch lies that is imported in no time."""

from pathlib import Path

QUICK_TORCH = Path(__file__).with_name("quick_torch")
"""For PYTHONPATH, where a test is about what `env` finds out beside torch."""
