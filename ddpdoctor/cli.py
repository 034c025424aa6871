"""The command line: one function per command, which parses, calls and prints. No logic."""

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False)
