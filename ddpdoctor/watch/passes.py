"""Counts how a wrapper is used: its forward passes, and whether a reduction followed each.

All that happens at every pass is a letter more in a string. Lines are looked up only in the few
windows that are sampled. A window lasts from one optimizer step to the next.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ddpdoctor.watch.aside import aside
from ddpdoctor.watch.digests import is_capturing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import Frame, is_users, looks_at_others, outwards, users_frame

REDUCED, LONE, HELD = "s", "a", "n"
"""A pass that a reduction followed; one that none followed; one under `no_sync`."""

_PATTERNS, _WINDOW = 16, 64
_FEW = 4
"""Gradients that are looked at."""
_ROWS, _SAMPLES, _NUMBERS = 256, 16, 1 << 21
"""Rows of what the model gave that are looked at; so many of each pass, of so many numbers."""
Line = tuple[tuple[int, int], ...]
"""The user's frames of one call."""


class Link:
    """What one optimizer has seen of one wrapper since it last stepped."""

    def __init__(self, optimizer: Any, passes: str) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.passes = passes
        self.windows: Counter[str] = Counter()
        self.is_partial = False
        """The beginning of this window was not seen."""
        self.line: Frame | None = None
        """Where it steps."""
        self.is_overtaken = False
        """Another has stepped since the last pass."""

    def close(self) -> str:
        """End the window; the letters of its passes."""
        passes, self.passes = self.passes, ""
        if self.is_partial:
            self.is_partial = False
        elif passes in self.windows or len(self.windows) < _PATTERNS:
            self.windows[passes] += 1
        return passes


class _Mark:
    """Lives as long as the graph that it is put into."""


class Passes:
    """The forward passes of one wrapper, of those that build a graph."""

    def __init__(self, number: int, wrapper: Any) -> None:
        self.number = number
        self.wrapper = weakref.ref(wrapper)
        self.shared = {n: id(p) for n, p in wrapper.module.named_parameters() if p.requires_grad}
        """The parameters that DDP took into its buckets."""
        self.modules = {id(module) for module in wrapper.modules()}
        self.links: list[Link] = []
        self.kept_out = ""
        """Why ranks may differ on purpose; empty if they may not."""
        self.places: dict[str, Frame] = {}
        self.total = 0
        """Passes that a reduction has followed, as far as each was looked at."""
        self.repeats: list[int] = []
        """By sampled window: how many passes of one line were reduced."""
        self.always_used: bool | None = None
        """With find_unused_parameters: whether every pass used every parameter."""
        self.late_backward = False
        """A pass under `no_sync` had its backward outside of it."""
        self.clipped_early = 0
        """How often gradients were clipped that had not been reduced yet."""
        self.clipped_scaled = 0
        """How often gradients were clipped while a GradScaler's factor was on them."""
        self.probe: Callable[[], None] | None = None
        """Ends what `probes` listens to, if it does."""
        self.rows_back = self.rows_used = 0
        """Rows of what the model gave that a gradient came back of, and those that have one."""
        self.past_for = 0
        """For so many windows more what goes past the wrapper is looked for."""
        self.empty_at = self.emptied = 0
        """The step of the latest window without a pass, and how many there were."""
        self.graphs_kept = 0
        """Of how many earlier sampled windows the graph was still alive."""
        self.looked_at = 0
        """Optimizer steps taken when its buffers were looked at."""
        self.evaluated_at = self.evaluations = 0
        """Steps taken when it was last evaluated, and after how many it was."""
        self.sent = 0
        """Passes without a graph, or in evaluation mode, in which it sent its buffers."""
        self.inside = False
        self.is_early = True
        """Its first passes, whose samples are looked at, are not over."""
        self.sampling = False
        self.resting = False
        """This window is not looked at closely: its passes are counted, and taken for reduced."""
        self._early = ""
        self._seq = -1
        self._went_back = False
        self._graphs: list[weakref.ref[_Mark]] = []
        self._lines: list[Line] = []
        self._reduced: Counter[Line] = Counter()
        self._begins_anew = False
        """A pass of this window went backward after the gradients of those before were gone."""

    def link(self, optimizer: Any) -> Link:
        """A link for one more optimizer, which has seen what there was until now."""
        link = Link(optimizer, self._early)
        self._early = ""
        self.links = [*(each for each in self.links if each.optimizer() is not None), link]
        return link

    def before_forward(self, wrapper: Any) -> None:
        """A forward pass that builds a graph begins."""
        if self._seq >= 0:
            self.settle(wrapper)
        self.inside = True
        if wrapper._join_config.enable:
            self.kept_out = "Join"

    def after_forward(self, wrapper: Any, output: Any) -> None:
        """It has ended."""
        self.inside = False
        held = not wrapper.require_backward_grad_sync
        letter = HELD if held else LONE
        for link in self.links:
            link.passes = (link.passes + letter)[-_WINDOW:]
        if not self.links:
            self._early = (self._early + letter)[-_WINDOW:]
        self._went_back = False
        self._seq = -1 if held else wrapper.process_group._get_sequence_number_for_group()
        if self.sampling and len(self._lines) < _WINDOW:
            self._sample(wrapper, output, held)

    def settle(self, wrapper: Any) -> None:
        """Note whether a reduction has followed the latest pass.

        DDP's buckets are collectives of its group: if none was issued, nothing was reduced.
        """
        if self._seq < 0:
            return
        seq, self._seq = self._seq, -1
        if wrapper.process_group._get_sequence_number_for_group() == seq:
            return
        self.total += 1
        for link in self.links:
            link.passes = link.passes[:-1] + REDUCED
        if not self.links:
            self._early = self._early[:-1] + REDUCED
        if self._lines and self._went_back:
            self._reduced[self._lines[-1]] += 1
        if wrapper.find_unused_parameters:
            self._note_use(wrapper)

    def close_sample(self) -> None:
        """The sampled window has ended with a step."""
        if self.sampling:
            alive = sum(graph() is not None for graph in self._graphs[:-1])
            self.graphs_kept = max(self.graphs_kept, alive)
            most = max(self._reduced.values(), default=0)
            self.repeats.append(min(most, 1) if self._begins_anew else most)
        self._begins_anew = False
        self._lines.clear()
        self._reduced.clear()

    @harmless
    def _sample(self, wrapper: Any, output: Any, held: bool) -> None:
        frames = list(_users_frames(sys._getframe(1)))
        self._lines.append(tuple((id(frame.f_code), frame.f_lineno) for frame in frames))
        if (place := users_frame(frames[0] if frames else None)) is not None:
            self.places["held forward" if held else "forward"] = place
        node = _node(output)
        if node is None:
            return
        passes = weakref.ref(self)

        @aside
        def before_backward(gradients: Any) -> None:
            if (mine := passes()) is not None:
                mine._note_backward(held)
                mine._note_rows(gradients)

        node.register_prehook(before_backward)
        if len(self._lines) == 1:
            node.metadata["ddpdoctor"] = mark = _Mark()
            self._graphs = [*self._graphs[-_WINDOW:], weakref.ref(mark)]

    def _note_backward(self, held: bool) -> None:
        wrapper = self.wrapper()
        if wrapper is None:
            return
        self._went_back = True
        if self._reduced and not _holds_gradients(wrapper):
            self._begins_anew = True
        outside = held and wrapper.require_backward_grad_sync
        self.late_backward |= outside
        place = users_frame(sys._getframe(1)) or _main_threads_line()
        if place is not None and self.sampling:
            inside = not held and not wrapper.require_backward_grad_sync
            kind = "late backward" if outside else "held backward" if inside else "backward"
            self.places[kind] = place

    @harmless
    def _note_rows(self, gradients: Any) -> None:
        """Whether what follows the model has made use of all that it gave, or of a part."""
        if self.rows_back >= _ROWS or gradients[0] is None or gradients[0].dim() < 2:
            return
        rows = gradients[0].detach()[:_SAMPLES]
        if 0 < rows.numel() <= _NUMBERS and not is_capturing([rows]):
            self.rows_back += len(rows)
            self.rows_used += int((rows != 0).flatten(1).any(1).sum())

    @harmless
    def _note_use(self, wrapper: Any) -> None:
        """The reducer's own map: for each parameter, how many ranks used it (or whether this did).

        The map is this rank's, or the sum over ranks if DDP had to ask; all alike is all used.
        """
        used = wrapper.reducer._get_local_used_map()
        least, most = (int(bound) for bound in used.aminmax())
        self.always_used = self.always_used is not False and 0 < least == most


def _holds_gradients(wrapper: Any) -> bool:
    """Whether there is any, by the first few of them: what is set to zero is as good as gone."""
    all_held = (p.grad for p in wrapper.module.parameters() if p.grad is not None)
    held = list(itertools.islice(all_held, _FEW))
    return is_capturing(held) or any(bool(each.any()) for each in held)


@looks_at_others
def _main_threads_line() -> Frame | None:
    """On a GPU backward runs in a thread of its own, and the main one waits for it."""
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    return users_frame(main) if main is not None else None


def _users_frames(frame: FrameType) -> Iterator[FrameType]:
    return (each for each in outwards(frame) if is_users(each.f_code))


def _node(output: Any) -> Any:
    """The graph node of the first tensor in the output that has one."""
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        return next((node for child in output if (node := _node(child)) is not None), None)
    return getattr(output, "grad_fn", None)
