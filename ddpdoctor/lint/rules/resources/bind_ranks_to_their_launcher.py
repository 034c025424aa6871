"""Ranks that outlive their launcher.

## What it does
Finds a hand-made launcher: `subprocess.Popen` with RANK in its environment, and nothing that ends
the rank when the launcher is killed.

## Why is this bad?
SIGKILL (of a scheduler, or of the kernel out of memory) runs no handler and no `finally`. The ranks
live on, and hold port, memory and devices that the next job wants.

## Example
```python
for rank in range(4):
    subprocess.Popen(command, env={**os.environ, "RANK": str(rank)})
```

## Use instead
```python
def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

for rank in range(4):
    subprocess.Popen(
        command, env={**os.environ, "RANK": str(rank)}, preexec_fn=die_with_parent
    )
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import NONE
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP605", name="orphan-ranks", confidence="likely")

_BINDS = ("kw_preexec_fn", "kw_start_new_session", "kw_process_group", "kw_**")
"""Either the rank asks for a signal at its parent's death, or somebody wants to kill its group."""


def check(run: Run) -> Iterator[Hit]:
    """Yield the starts of ranks that nothing binds to their launcher."""
    for event, _ in events(run.root, "start"):
        if event.values.get("rank", NONE) is NONE or event.values.keys() & set(_BINDS):
            continue
        yield Hit(
            event.node,
            "a rank started here lives on when its launcher is killed",
            help="bind it: preexec_fn with prctl(PR_SET_PDEATHSIG, SIGKILL), or start it with "
            "torch.multiprocessing.spawn",
            path=event.path,
        )
