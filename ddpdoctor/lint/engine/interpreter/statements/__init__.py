"""Running statements, and joining the ways that they open."""

from ddpdoctor.lint.engine.interpreter.statements.blocks import run_block

__all__ = ["run_block"]
