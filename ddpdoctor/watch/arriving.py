"""What a backward pass gives each parameter, before anybody's hooks have done anything to it.

Where gradients are reduced while the pass runs, by a hook or by a callback that a hook has queued,
what it leaves is the sum already. Only of a pass for a step that is looked at, and of a job that
was seen to communicate in an earlier one: no other job's parameters are touched.
"""

from __future__ import annotations

from typing import Any

from ddpdoctor.watch.digests import few
from ddpdoctor.watch.given import GRADIENT
from ddpdoctor.watch.harmless import harmless


class Arriving:
    """Listens to the gradients of some parameters until it is told to end."""

    def __init__(self, heads: dict[tuple[float, ...], str]) -> None:
        self.left: dict[str, list[float]] = {}
        """Some elements of each as backward alone would have left it, by its name."""
        self._heads = heads
        """Where the first numbers of each are written, by which it is known again."""
        self._handles: list[Any] = []

    @harmless
    def listen(self, named: dict[str, Any]) -> None:
        """Be the first to see what these get."""
        for name, parameter in named.items():
            if not parameter.requires_grad or not parameter.is_leaf:
                continue
            handle = parameter.register_hook(self._hook(name, parameter))
            self._handles.append(handle)
            hooks = parameter._backward_hooks  # torch calls them in the order of this dictionary
            others = {key: hook for key, hook in hooks.items() if key != handle.id}
            for key in others:
                del hooks[key]
            hooks.update(others)

    @harmless
    def end(self) -> None:
        """Hear no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _hook(self, name: str, parameter: Any) -> Any:
        @harmless
        def see(gradient: Any) -> None:
            if gradient.device.type != "cpu" or not self._handles:
                return
            fresh, held = gradient.detach(), parameter.grad
            whole = fresh if held is None else fresh + held.detach()
            self.left.update(few({name: whole}))
            for each in (fresh, whole):
                row = tuple(each.reshape(-1)[:GRADIENT].double().tolist())
                if len(row) == GRADIENT and any(row):
                    self._heads[row] = name

        return see
