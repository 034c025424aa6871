"""Keeps our own code out of what torch.compile compiles."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ddpdoctor.watch.harmless import harmless

P = ParamSpec("P")
T = TypeVar("T")


def aside(function: Callable[P, T]) -> Callable[P, T | None]:
    """Harmless, and neither traced nor compiled: Dynamo's frame evaluation rests meanwhile."""
    from torch._C._dynamo import eval_frame

    # Not by way of `harmless`: this is called several times a step, and each frame costs.
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
        before = eval_frame.set_eval_frame(None)
        try:
            return function(*args, **kwargs)
        except Exception:
            return None
        finally:
            eval_frame.set_eval_frame(before)

    skip(call)
    return call


def is_compiling() -> bool:
    """Whether Dynamo is tracing this very call: then it is to see the original alone."""
    return bool(sys.modules["torch"].compiler.is_compiling())


def is_traced() -> bool:
    """Whether calls are recorded, batched or captured: what we ask of a tensor would be, too."""
    torch: Any = sys.modules["torch"]
    return bool(
        torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
    )


@harmless
def skip(function: Any) -> None:
    """Have Dynamo run this function as it is; what it calls is tried as before."""
    from torch._C._dynamo import eval_frame

    code = function.__code__
    if hasattr(eval_frame, "skip_code"):  # before torch 2.7
        eval_frame.skip_code(code)
        return
    action = eval_frame._FrameAction
    strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
    eval_frame.set_code_exec_strategy(code, strategy)
