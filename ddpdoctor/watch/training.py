"""Records the training steps: what DDP promises to keep equal, and how the wrapper was used.

Before optimizer steps 1, 2, 4, 8, ... (and every n-th with `DDPDOCTOR_DIGEST_EVERY=n`) digests of
parameters and gradients are written, and how the wrappers were used until then. In between, a pass
or a step costs a few counters, and once a training has become regular, only every fourth step is
looked at closely: what this is called with comes from cold caches, and 50 microseconds a step are
one percent of a short one.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ddpdoctor.watch import (
    attributes,
    changes,
    copies,
    joining,
    losses,
    noise,
    outside,
    probes,
    rested,
    unheld,
)
from ddpdoctor.watch.altered import Altered
from ddpdoctor.watch.arriving import Arriving
from ddpdoctor.watch.aside import aside, is_compiling, is_traced, skip
from ddpdoctor.watch.backwards import Backwards
from ddpdoctor.watch.digests import Budget, digests, few, is_capturing, size
from ddpdoctor.watch.exceptions import passing
from ddpdoctor.watch.factors import factors
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.identity import ByIdentity
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.passes import HELD, REDUCED, Link, Passes
from ddpdoctor.watch.places import outwards, users_frame
from ddpdoctor.watch.samples import Samples
from ddpdoctor.watch.scaling import Scaling
from ddpdoctor.watch.schedules import Schedules
from ddpdoctor.watch.window import Window

_EVERY = "DDPDOCTOR_DIGEST_EVERY"
_OPTIMIZERS = 64
_BEGINNING, _EVERY_FOURTH = 64, 4
"""Until which step every one is looked at closely, and which ones from then on."""
_RESTING = 64
_SENT = 16
"""So many passes that are no training are written down as sent, and then ever fewer."""
_LAZY, _PATIENCE = 8, 64
"""Steps without a pass after which the next such is waited for, and how many steps long."""
_LIMIT = 1000.0
"""A larger limit for clipping is meant for scaled gradients."""


def install(
    log: Log, doubled: Callable[[Any], None]
) -> tuple[Callable[[Any], None], Callable[[Any], None]]:
    """Wrap DDP's forward and the clipping of gradients, and listen to optimizer steps.

    `doubled` is called with the optimizer after steps 1, 2, 4, 8, ... of this process. Returns what
    is to be called with each module that is about to be wrapped, and with each DDP that was built.
    """
    from torch.nn import parallel
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    training = _Training(log, doubled)
    wrapper_type: Any = parallel.DistributedDataParallel
    _around_forward(wrapper_type, training)
    _around_clipping(training)
    joining.before_leaving(training.finish)
    training.scaling.listen()
    losses.listen(log, training.scaling, training)
    training.schedules.listen()
    noise.listen_to_plateaus(log)
    noise.listen_to_seeds(log)
    register_optimizer_step_pre_hook(training.before_step)
    register_optimizer_step_post_hook(training.after_step)
    return training.copies.wrapping, training.built


class _Optimizer:
    """An optimizer that has stepped, and its links to the wrappers whose parameters it holds."""

    def __init__(self, number: int, optimizer: Any) -> None:
        self.number = number
        self.optimizer = weakref.ref(optimizer)
        self.steps = 0
        self.due = 1
        """The next step before which digests are written."""
        self.rests_until = 0
        """The step with which the next window begins that is looked at closely."""
        self.rates = 0
        """Digest of the learning rates of all steps so far."""
        self.still_since = self.still_counted = 0
        """The step from which on all rates are zero, and what the schedule had counted by then."""
        self.links: list[tuple[Passes, Link]] = []
        self.clip: outside.Clipped = {}
        """What was clipped for a step without a DDP that will be looked at."""
        self.copied: int | None = None
        """The wrapper of which it was told to hold a copy, and nobody the original."""
        self.graded: outside.Graded = {}
        """What the latest backward pass for such a step has left."""
        self.talks = False
        """Collectives were issued in the course of one of those passes."""
        self.arriving: Arriving | None = None

    def goes_by(self, groups: Any) -> bool:
        """Take in the learning rates of a step; whether any of them is not zero."""
        moves = False
        for group in groups:
            if type(rate := group.get("lr")) is float:
                self.rates = hash((self.rates, rate))
                moves = moves or rate != 0.0
            else:  # To ask a tensor may wait for a GPU.
                moves = True
        return moves


class _Training:
    """All wrappers and optimizers of this process. Nothing of the job is kept alive."""

    def __init__(self, log: Log, doubled: Callable[[Any], None]) -> None:
        import torch

        self._doubled = doubled
        self._norms = torch.nn.modules.batchnorm._NormBase
        self._is_compiling = torch.compiler.is_compiling
        self.scaling = Scaling()
        self.schedules = Schedules(log)
        self.log = log
        self.passes = ByIdentity[Passes]()
        self._built = 0
        self._optimizers = ByIdentity[_Optimizer]()
        self._known: list[_Optimizer] = []
        self._unwrapped = ByIdentity[_Optimizer]()
        """Those that have stepped before there was a DDP."""
        self._finished_at = 0
        self._budget = Budget()
        self.copies = copies.install(self._budget)
        self._every = int(word) if (word := os.environ.get(_EVERY, "")).isdigit() else 0
        self._stepping: list[int] = []
        self.altered = Altered(log)
        self.backwards = Backwards(log)
        self.samples = Samples(log)
        self.window = Window(log, self._budget, self._is_inside)
        self._factors: list[float] | None = []
        """By what the means of the loss are multiplied that goes backward."""
        self._issued = 0
        """Collectives until it did, and then until it had done."""

    @harmless
    def built(self, wrapper: Any) -> None:
        """A DDP has been built."""
        if not self._built:
            atexit.register(self.finish)
            changes.listen(self.passes)
            changes.listen_to_conversions(self.passes)
            changes.listen_to_resting(self.passes)
            rested.listen(self.log, self.passes, self._budget)
        passes = Passes(self._built, wrapper)
        self.passes[wrapper] = passes
        passes.sampling = True
        self._built += 1
        self.copies.wrapped(wrapper)
        self.altered.wrapped(passes.number, wrapper)
        self.backwards.built(self.passes)

    def before_forward(self, passes: Passes, wrapper: Any) -> None:
        """A forward pass that builds a graph begins; one of an optimizer's closure is left out."""
        if self.altered.is_on:
            self.altered.end()
        if not (self._stepping and self._is_stepping()):
            passes.before_forward(wrapper)
            self.sends(passes, wrapper)

    def sends(self, passes: Passes, wrapper: Any) -> None:
        """A forward pass begins, be it without a graph, in which DDP may send what it holds."""
        if passes.sampling and self.log.steps > passes.looked_at:
            self._write_buffers(passes, wrapper)

    @harmless
    def evaluates(self, passes: Passes, wrapper: Any) -> None:
        """The first pass since a step begins that is no training: which weights it is made with."""
        passes.evaluated_at = self.log.steps
        passes.evaluations += 1
        parameters = dict(wrapper.module.named_parameters())
        if passes.evaluations & (passes.evaluations - 1) or is_capturing(parameters.values()):
            return
        if self._budget.take(size(parameters)):
            self.log.write(
                "evaluated",
                wrapper=passes.number,
                step=self.log.steps,
                parameters=digests(parameters),
                place=users_frame(),
            )

    @harmless
    def tells(self, passes: Passes, wrapper: Any) -> None:
        """A pass that is no training begins: the number under which its buffers are sent."""
        if not (wrapper.require_forward_param_sync and wrapper.will_sync_module_buffers()):
            return
        passes.sent += 1
        if passes.sent > _SENT and passes.sent & (passes.sent - 1):
            return
        group = wrapper.process_group
        self.log.write(
            "sent",
            wrapper=passes.number,
            group=group.group_name,
            seq=group._get_sequence_number_for_group() + 1,
            place=users_frame(),
            way=self.log.way(sys._getframe(1)),
        )

    @harmless
    def _write_buffers(self, passes: Passes, wrapper: Any) -> None:
        """What DDP is about to overwrite, or leaves as it is, but for what batch norms hold."""
        sends = wrapper.require_forward_param_sync and wrapper.will_sync_module_buffers()
        if not sends and wrapper.broadcast_buffers:
            return
        passes.looked_at = self.log.steps
        found = {
            f"{path}.{name}".lstrip("."): buffer
            for path, module in wrapper.module.named_modules()
            if not isinstance(module, self._norms)
            for name, buffer in module._buffers.items()
            if buffer is not None
        }
        for name in getattr(wrapper, "parameters_to_ignore", ()):
            found.pop(name, None)
        if found and not is_capturing(found.values()) and self._budget.take(size(found)):
            self.log.write(
                "buffers",
                wrapper=passes.number,
                step=self.log.steps,
                digests=digests(found),
                sent=sends,
                place=users_frame(),
            )

    def fed(self, passes: Passes, inputs: Any, kwargs: Any) -> None:
        """The model is given these samples, in an early pass or while a window is open."""
        if self.window.replaced.is_on:
            self.window.fed(inputs, kwargs)
        if passes.is_early:
            passes.is_early = bool(self.samples.note(passes.number, inputs, kwargs))

    def after_forward(self, passes: Passes, wrapper: Any, output: Any) -> None:
        """It has ended."""
        if not (self._stepping and self._is_stepping()):
            passes.after_forward(wrapper, output)

    def _is_stepping(self) -> bool:
        """Whether this is called from within a step; one that has raised is told to nobody."""
        alive = {id(frame) for frame in outwards(sys._getframe(1))}
        self._stepping = [frame for frame in self._stepping if frame in alive]
        return bool(self._stepping)

    @harmless
    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """An optimizer is about to step; an optimizer inside an optimizer is part of its step.

        Returns the arguments that it is to be called with, if they are others.
        """
        if self._is_compiling():
            return None
        is_inner = bool(self._stepping) and self._is_stepping()
        self._stepping.append(id(sys._getframe(2)))
        if is_inner:
            return None
        if (len(args) > 1 or kwargs) and _has_closure(args, kwargs) and _calls_once(optimizer):
            return self._told_of_its_end(optimizer, args, kwargs)
        self._stands_before_step(optimizer, args, kwargs)
        return None

    def _told_of_its_end(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """The arguments of a step, with a closure in them that tells of its end.

        What is stepped on is there by then: its passes come within the step, as a trainer has it.
        """

        def telling(closure: Any) -> Any:
            @functools.wraps(closure)
            def call(*inputs: Any, **named: Any) -> Any:
                stepping, self._stepping = self._stepping, []
                told: Any = (optimizer, args, kwargs)  # as one with a closure, where that raises
                try:
                    made = closure(*inputs, **named)
                    told = (optimizer, (), {})
                finally:
                    self._stepping = stepping
                    harmless(self._stands_before_step)(*told)
                return made

            return call

        named = {n: telling(each) if callable(each) else each for n, each in kwargs.items()}
        given = tuple(telling(each) if callable(each) else each for each in args[1:])
        return (*args[:1], *given), named

    def _stands_before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """All that it will step on is there."""
        if not self._built:
            self._by_hand(optimizer)
            return
        if self.altered.is_on:
            self.altered.end()
        mine = self._optimizers.get(optimizer)
        if mine is None:
            mine = _Optimizer(len(self._known), optimizer)
            self._optimizers[optimizer] = mine
            self._disturb()
            self._known.append(mine)
        mine.steps += 1
        if mine.goes_by(optimizer.param_groups):
            mine.still_since = 0
        elif not mine.still_since:
            mine.still_since = mine.steps
            mine.still_counted = self.schedules.counted(optimizer) or 0
        if mine.steps <= mine.rests_until:
            if mine.steps == mine.rests_until:
                _wake(mine)
            return
        if is_due := mine.steps == mine.due:
            self.window.close(mine.steps, self._held)
            mine.due = self._due_after(mine.steps)
            self._join(mine, optimizer)
        is_next_due = mine.steps + 1 == mine.due
        if (len(args) > 1 or kwargs) and _has_closure(args, kwargs):
            _keep_out(mine, "closure")
        for passes, link in mine.links:
            if (wrapper := passes.wrapper()) is not None:
                passes.settle(wrapper)
                window = link.close()
                if is_due or is_next_due or passes.sampling or passes.probe is not None:
                    self._close(passes, link, wrapper, mine, window, is_due)
                if not window and passes.links[0] is link and passes.emptied < _LAZY:
                    self._look_for_the_next(passes, mine.steps)
        if is_due:
            mine.clip = {}
            self._outside(mine, optimizer)
            self._unheld(mine, optimizer)
        if mine.steps >= _BEGINNING:
            self._rest(mine)

    def _look_for_the_next(self, passes: Passes, step: int) -> None:
        """A step without a pass came, as of a penalty now and then: look until there is another."""
        since, passes.empty_at = step - passes.empty_at, step
        passes.emptied += 1
        if passes.probe is None:
            probes.after(passes, "")
        if passes.past_for:
            passes.past_for = max(passes.past_for, min(since + 1, _PATIENCE))

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """The step has been taken."""
        if self._is_compiling():
            return
        if self._stepping:
            self._stepping.pop()
        self.log.steps = steps = self.log.steps + 1
        self.log.trainer = threading.get_ident()
        if self._built and steps + 1 & steps == 0:
            self.window.open(steps + 1)
            if steps < _BEGINNING:
                pairs = ((passes.number, wrapper) for wrapper, passes in self.passes.items())
                self.altered.stepped(steps, pairs)
        if steps & (steps - 1) == 0:
            self.log.write("step", number=steps)
            self._doubled(optimizer)

    @harmless
    def clipping(self, limit: Any) -> None:
        """Gradients are about to be clipped; who scales the limit along knows what they do."""
        open_windows = [p for p in self.passes.values() if p.links and p.links[0].passes]
        if open_windows and all(p.links[0].passes[-1] == HELD for p in open_windows):
            for passes in open_windows:
                passes.clipped_early += 1
                _note_line(passes, "clip")
        elif open_windows and self.scaling.is_on and float(limit) <= _LIMIT:
            for passes in open_windows:
                passes.clipped_scaled += 1
                _note_line(passes, "clip")

    def looks_at_clipping(self) -> bool:
        """Whether gradients that no DDP has reduced are stepped on next, as far as can be told.

        Only before steps that will be looked at.
        """
        return self.looks() if not self._built else any(map(self._is_held, self._known))

    def _is_held(self, mine: _Optimizer) -> bool:
        due = mine.steps + 1 == mine.due
        return due and any(link.passes.endswith(HELD) for _, link in mine.links)

    def begins(self) -> None:
        """A backward pass begins."""
        if self.backwards.is_on:
            self.backwards.begins(self.passes)

    def looks(self) -> bool:
        """Whether a step without a DDP comes next that will be looked at."""
        return not self._built and any(
            each.steps + 1 == each.due for each in self._unwrapped.values()
        )

    @harmless
    def before(self, roots: Any) -> None:
        """A backward pass for such a step begins."""
        self._issued = self.log.issued
        traced = is_traced()
        self._factors = [] if traced or len(roots) > 1 else factors(*roots)
        self.log.gradients = {}
        for mine, optimizer in self._due_by_hand():
            _hear_no_more(mine)
            if mine.talks and not traced:
                mine.arriving = Arriving(self.log.gradients)
                mine.arriving.listen(outside.some(mine.number, optimizer) or {})

    @harmless
    def after(self) -> None:
        """It has ended."""
        self.log.gradients = {}
        talked, self._issued = self.log.issued > self._issued, self.log.issued
        for mine, optimizer in self._due_by_hand():
            given = _hear_no_more(mine)
            mine.talks = mine.talks or talked
            mine.graded = {
                **self._left(mine, optimizer),
                **({"left": given} if given and talked else {}),
                "factors": self._factors or [],
                "passes": mine.graded.get("passes", 0) + 1,
                "talked": talked,
            }

    def _due_by_hand(self) -> Iterator[tuple[_Optimizer, Any]]:
        """The optimizers whose next step will be looked at, without a DDP."""
        for mine in self._unwrapped.values():
            optimizer = mine.optimizer()
            if optimizer is not None and mine.steps + 1 == mine.due:
                yield mine, optimizer

    def _left(self, mine: _Optimizer, optimizer: Any) -> dict[str, Any]:
        """What is written of gradients that nothing has reduced since the backward pass."""
        self.log.gradients.update(outside.heads(mine.number, optimizer) or {})
        return outside.graded(mine.number, optimizer, self._budget) or {"left": {}}

    @harmless
    def clipped(self, given: list[Any], norm: Any, limit: Any) -> None:
        """The gradients of these parameters have been clipped by their norm."""
        ids, bit = {id(p) for p in given}, float(norm) > float(limit)
        for mine, optimizer in self._due_by_hand():
            own = outside.gradients_of(mine.number, optimizer, ids) or {}
            mine.clip = outside.clipped(own, bit=bit, budget=self._budget) or {}
            if not mine.graded:
                continue
            if self.log.issued == self._issued and not mine.graded["talked"]:
                mine.graded.update(self._left(mine, optimizer))
            elif bit:  # as clip_grad_norm_ has it
                by = float(limit) / (float(norm) + 1e-6)
                mine.graded["scaled"] = mine.graded.get("scaled", 1.0) * by
        for mine in filter(self._is_held, self._known):
            for passes, link in mine.links:
                wrapper = passes.wrapper() if link.passes.endswith(HELD) else None
                if wrapper is not None:
                    held = wrapper.module.named_parameters()
                    own = {n: p.grad for n, p in held if id(p) in ids and p.grad is not None}
                    mine.clip = outside.clipped(own, bit=bit, budget=self._budget) or {}

    @harmless
    def finish(self) -> None:
        """The job leaves its process group, or ends: what there is now is written down, once."""
        self.window.replaced.undo()
        self.altered.end()
        steps = sum(mine.steps for mine in self._known)
        if steps == self._finished_at:
            return
        self._finished_at = steps
        of_groups = ((each.optimizer(), each.steps) for each in self._known)
        self.schedules.finish({id(o.param_groups): n for o, n in of_groups if o is not None})
        for mine in self._known[-_OPTIMIZERS:]:
            for passes, link in mine.links:
                self._write_use(passes, link, mine)
                if (wrapper := passes.wrapper()) is not None and not self._is_stepping():
                    self._write_sample(passes, wrapper, mine, is_last=True)

    def _rest(self, mine: _Optimizer) -> None:
        """Do not look closely at the windows until the one that ends with the next step looked at.

        Only where this optimizer is the only one: windows of others end elsewhere.
        """
        next_look = min(mine.steps + _EVERY_FOURTH, mine.due - 1)
        others = any(each is not mine and each.optimizer() is not None for each in self._known)
        if next_look - 1 <= mine.steps or others:
            return
        mine.rests_until = next_look - 1
        for passes, _ in mine.links:
            passes.resting = True

    def _disturb(self) -> None:
        """Another optimizer has come: no rest any more, and an open window is not whole."""
        for mine in self._known:
            if mine.steps < mine.rests_until:
                _wake(mine)
                for _, link in mine.links:
                    link.is_partial = True

    def _is_inside(self) -> bool:
        """Whether a forward pass of a wrapper is under way."""
        return any(passes.inside for passes in self.passes.values())

    def _held(self) -> set[int]:
        """The modules of all wrappers, by identity."""
        return {id(part) for wrapper, _ in self.passes.items() for part in wrapper.modules()}

    def _due_after(self, step: int) -> int:
        doubled = 1 << step.bit_length()
        return min(doubled, (step // self._every + 1) * self._every) if self._every else doubled

    def _join(self, mine: _Optimizer, optimizer: Any) -> None:
        """Link an optimizer with the wrappers whose parameters it holds by now."""
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        linked = {passes.number for passes, _ in mine.links}
        for wrapper, passes in self.passes.items():
            mixed = any(id(p) in held for p in wrapper.module.parameters())
            if mixed and passes.number not in linked:
                mine.links.append((passes, passes.link(optimizer)))

    def _close(
        self,
        passes: Passes,
        link: Link,
        wrapper: Any,
        mine: _Optimizer,
        window: str,
        is_due: bool,
    ) -> None:
        is_first = passes.links[0] is link
        others = (each.passes for each in passes.links if each is not link)
        link.is_overtaken = not is_first and not all(others)
        if is_first:
            passes.close_sample()
        if is_due:
            link.line = link.line or users_frame()
            passes.kept_out = passes.kept_out or _reason_to_differ(wrapper)
            self._write_use(passes, link, mine)
            self._write_sample(passes, wrapper, mine)
        if is_first:
            passes.sampling = mine.steps + 1 == mine.due
            suspicious = (passes.sampling or is_due) and not window.endswith((REDUCED, HELD))
            if passes.probe is not None or suspicious:
                probes.after(passes, window)
        elif passes.past_for or (is_due and passes.probe is None):
            probes.after(passes, "" if link.is_overtaken else window, again=is_due)

    @harmless
    def _write_use(self, passes: Passes, link: Link, mine: _Optimizer) -> None:
        self.log.write(
            "training",
            wrapper=passes.number,
            optimizer=mine.number,
            steps=mine.steps,
            windows=dict(link.windows),
            reductions=passes.total,
            still_since=mine.still_since,
            still_counted=mine.still_counted,
            repeats=passes.repeats[-8:],
            kept_out=passes.kept_out,
            always_used=passes.always_used,
            graphs_kept=passes.graphs_kept,
            late_backward=passes.late_backward,
            overtaken=link.is_overtaken,
            clipped_early=passes.clipped_early,
            clipped_scaled=passes.clipped_scaled,
            rows_back=passes.rows_back,
            rows_used=passes.rows_used,
            places={**passes.places, **({"step": link.line} if link.line is not None else {})},
        )

    @harmless
    def _write_sample(
        self, passes: Passes, wrapper: Any, mine: _Optimizer, *, is_last: bool = False
    ) -> None:
        parameters = dict(wrapper.module.named_parameters())
        if passes.kept_out or is_capturing(parameters.values()):
            return
        gradients = {
            name: p.grad for name, p in parameters.items() if p.grad is not None and not is_last
        }
        if not self._budget.take(size(parameters) + size(gradients)):
            return
        ignored = getattr(wrapper, "parameters_to_ignore", ())
        held = digests({n: p for n, p in parameters.items() if n not in ignored})
        self.log.write(
            "sample",
            wrapper=passes.number,
            optimizer=mine.number,
            step=mine.steps + is_last,
            rates=outside.rates(mine.optimizer()),
            rates_so_far=_hexadecimal(mine.rates),
            few=few(parameters),
            reductions=passes.total,
            parameters=held,
            gradients=digests({n: g for n, g in gradients.items() if n not in ignored}),
            late=(
                late := [
                    name
                    for name in gradients
                    if name not in ignored and passes.shared.get(name) != id(parameters[name])
                ]
            ),
            noise="" if is_last else noise.state(wrapper),
            resting=_resting(wrapper),
            **({} if is_last or len(mine.links) > 1 else mine.clip),
        )
        self.copies.write(self.log, wrapper, passes.number, mine.steps + is_last, held)
        if own := attributes.facts(wrapper.module):
            step = mine.steps + is_last
            self.log.write("attributes", wrapper=passes.number, step=step, **own)
        if late:
            changes.look_for_unfreezing(passes)

    def _outside(self, mine: _Optimizer, optimizer: Any) -> None:
        """Parameters that this optimizer trains and that no wrapper holds."""
        inside = {id(p) for wrapper, _ in self.passes.items() for p in wrapper.module.parameters()}
        if found := outside.parameters(optimizer, inside):
            outside.write(self.log, mine.number, mine.steps, found, self._budget)

    def _unheld(self, mine: _Optimizer, optimizer: Any) -> None:
        """Parameters that DDP reduces and no optimizer holds, where this one holds a copy."""
        known = [each.optimizer() for each in self._known if each is not mine]
        others = [each for each in known if each is not None]
        wrappers = [(passes.number, wrapper) for wrapper, passes in self.passes.items()]
        mine.copied = unheld.look(
            self.log, mine.number, mine.steps, [optimizer, *others], wrappers, mine.copied
        )

    @harmless
    def _by_hand(self, optimizer: Any) -> None:
        """A step without any DDP, before which the ranks may have shared gradients themselves."""
        mine = self._unwrapped.get(optimizer)
        if mine is None:
            mine = _Optimizer(len(self._unwrapped.entries), optimizer)
            self._unwrapped[optimizer] = mine
        mine.steps += 1
        mine.goes_by(optimizer.param_groups)
        if mine.steps != mine.due and self.log.gradients:
            self.log.gradients = {}
        if mine.steps == mine.due and outside.is_one_of_several():
            mine.due = self._due_after(mine.steps)
            seen, mine.clip, mine.graded = {**mine.clip, **mine.graded}, {}, {}
            seen["rates_so_far"] = _hexadecimal(mine.rates)
            outside.write_by_hand(self.log, mine.number, mine.steps, optimizer, seen, self._budget)


def _hear_no_more(mine: _Optimizer) -> dict[str, list[float]]:
    """What its parameters were given since it was begun to listen to them."""
    arriving, mine.arriving = mine.arriving, None
    if arriving is None:
        return {}
    arriving.end()
    return arriving.left


def _hexadecimal(digest: int) -> str:
    return f"{digest & 0xFFFF_FFFF_FFFF_FFFF:x}"


def _wake(mine: _Optimizer) -> None:
    mine.rests_until = 0
    for passes, _ in mine.links:
        passes.resting = False


def _note_line(passes: Passes, name: str) -> None:
    if name not in passes.places and (place := users_frame()) is not None:
        passes.places[name] = place


def _resting(wrapper: Any) -> list[str]:
    """Parts that were left in evaluation mode, the first few in the order of their names."""
    modules = wrapper.module.named_modules()
    return sorted(name or "the model" for name, each in modules if not each.training)[:_RESTING]


def _has_closure(args: Any, kwargs: Any) -> bool:
    return any(map(callable, (*args[1:], *kwargs.values())))


def _calls_once(optimizer: Any) -> bool:
    """Whether it calls a closure once, before it steps: as torch's do, but for one."""
    kind = type(optimizer)
    return kind.__module__.startswith("torch.optim.") and kind.__name__ != "LBFGS"


def _keep_out(mine: _Optimizer, reason: str) -> None:
    for passes, _ in mine.links:
        passes.kept_out = reason


@harmless
def _why_different(wrapper: Any) -> str:
    if wrapper._use_python_reducer:
        return "python reducer"
    if hook := wrapper._get_ddp_logging_data().get("comm_hook"):
        return f"comm hook {hook}"
    return ""


def _reason_to_differ(wrapper: Any) -> str:
    """Why the ranks of this wrapper may differ on purpose; empty if they may not."""
    reason = _why_different(wrapper)
    return "unknown" if reason is None else reason


def _around_forward(wrapper_type: Any, training: _Training) -> None:
    import torch

    before, after = wrapper_type._pre_forward, wrapper_type._post_forward
    known, is_grad_enabled = training.passes.entries, torch.is_grad_enabled
    listening = training.window.replaced

    @functools.wraps(before)
    def pre_forward(wrapper: Any, *inputs: Any, **kwargs: Any) -> Any:
        entry = known.get(id(wrapper))
        with_graph = is_grad_enabled()
        if entry is not None and not (with_graph and wrapper.training) and not is_compiling():
            if training.log.steps != entry[1].evaluated_at:
                evaluates(entry[1], wrapper)
            tells(entry[1], wrapper)
        if entry is not None and with_graph:
            training.log.forwards += 1
            if not entry[1].resting and not is_compiling():
                begin(entry[1], wrapper)
                if listening.is_on or entry[1].is_early:
                    fed(entry[1], inputs, kwargs)
        elif entry is not None and entry[1].sampling and not is_compiling():
            sends(entry[1], wrapper)
        try:
            return before(wrapper, *inputs, **kwargs)
        except Exception as error:
            passing(training.log, error, "DDP")
            raise

    @functools.wraps(after)
    def post_forward(wrapper: Any, output: Any) -> Any:
        output = after(wrapper, output)
        entry = known.get(id(wrapper))
        if entry is not None and is_grad_enabled():
            if entry[1].resting:
                entry[1].total += wrapper.require_backward_grad_sync
            elif not is_compiling():
                end(entry[1], wrapper, output)
        return output

    run = getattr(wrapper_type, "_run_ddp_forward", None)

    def run_forward(wrapper: Any, *inputs: Any, **kwargs: Any) -> Any:
        assert run is not None
        try:
            return run(wrapper, *inputs, **kwargs)
        except Exception as error:
            if not is_compiling():
                passing(training.log, error, "forward")
            raise

    begin, end = aside(training.before_forward), aside(training.after_forward)
    fed, sends = aside(training.fed), aside(training.sends)
    evaluates, tells = aside(training.evaluates), aside(training.tells)
    wrapper_type._pre_forward, wrapper_type._post_forward = pre_forward, post_forward
    if run is not None:
        wrapper_type._run_ddp_forward = functools.wraps(run)(run_forward)
        skip(run_forward)
    # Dynamo does not compile DDP's own forward, but tries what it calls.
    for function in (pre_forward, post_forward, is_compiling):
        skip(function)


def _around_clipping(training: _Training) -> None:
    from torch.nn import utils

    module = sys.modules["torch.nn.utils.clip_grad"]
    for name, limit in (("clip_grad_norm_", "max_norm"), ("clip_grad_value_", "clip_value")):
        call = _clipping(getattr(module, name), limit, training)
        if name == "clip_grad_norm_":
            call = _clipping_by_hand(call, training)
        setattr(module, name, call)
        setattr(utils, name, call)


def _clipping(original: Any, limit: str, training: _Training) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_compiling():
            training.clipping(kwargs.get(limit, args[1] if len(args) > 1 else 0.0))
        return original(*args, **kwargs)

    return call


def _clipping_by_hand(original: Any, training: _Training) -> Any:
    from torch import Tensor

    @functools.wraps(original)
    def call(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not training.looks_at_clipping():
            return original(parameters, max_norm, *args, **kwargs)
        given = [parameters] if isinstance(parameters, Tensor) else [*parameters]
        # Who gives an empty generator is warned by torch, who gives an empty list is not.
        again = given or (each for each in given)
        norm = original(again, max_norm, *args, **kwargs)
        training.clipped(given, norm, max_norm)
        return norm

    return call
