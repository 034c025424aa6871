"""What ranks do in the tests of general laws; each has a twin that is right."""

from __future__ import annotations

import copy
import math
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable
from torch.distributed.nn import all_gather, all_reduce
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    Sampler,
    TensorDataset,
    random_split,
)


def join() -> int:
    dist.init_process_group("gloo")
    return dist.get_rank()


def leave() -> None:
    dist.barrier()
    dist.destroy_process_group()


def noise(*, own: bool, cropped: bool = False) -> None:
    """Denoise, with noise from a generator that is seeded alike, or for each rank.

    Where it is `cropped`, several numbers were drawn for each sample before.
    """
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if own:
        torch.manual_seed(100 + rank)
    clean = torch.randn(8, 3, generator=torch.Generator().manual_seed(rank))
    for _ in range(9):
        for _ in range(len(clean) * cropped):
            assert torch.rand(()) + torch.rand(1) + torch.randint(9, ()) + torch.randn([]) < 99
        drawn = torch.randn_like(clean)  # the noise
        optimizer.zero_grad()
        (model(clean + drawn) - drawn).square().mean().backward()
        optimizer.step()
        model.float().to("cpu")  # a conversion that changes nothing is none
    del model, optimizer
    leave()


def masked(rank: int, step: int, *, own: bool) -> Tensor:
    """So many targets of 12 count: of ranks alike, or thrice as many on one."""
    labels = torch.full((12,), -100)
    labels[: (3 + step % 2) * (1 + 2 * rank * own)] = 1
    return labels


def ignoring(*, own: bool) -> None:
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        optimizer.zero_grad()
        logits = model(torch.ones(12, 3))
        loss = nn.functional.cross_entropy(logits, masked(rank, step, own=own))  # the loss
        loss.backward()
        optimizer.step()
    del model, optimizer
    leave()


def ignored_targets() -> None:
    ignoring(own=True)


def as_many_targets() -> None:
    ignoring(own=False)


def packing(*, of_samples: bool) -> None:
    """Batches of as many samples as fit; the loss is a mean over samples, or over their parts."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.ones(60, 3), torch.zeros(60, dtype=torch.long))
    sizes = [2, 9, 3, 8] if rank else [9, 2, 8, 3]
    batches = [list(range(size)) for size in sizes * 3]
    for inputs, targets in DataLoader(data, batch_sampler=batches):
        parts = 1 if of_samples else 2
        logits, wanted = model(inputs).repeat(parts, 1), targets.repeat(parts)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits, wanted).backward()  # the packed loss
        optimizer.step()
    del model, optimizer
    leave()


def packed_samples() -> None:
    packing(of_samples=True)


def packed_parts() -> None:
    packing(of_samples=False)


def quotient(*, told: bool, empty: bool = False) -> None:
    """The sum over a mask, which may be `empty` on a rank, by its own count or that of all."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        mask = (masked(rank, step, own=True) > 0).float()
        mask = mask * (rank == 0) if empty else mask
        optimizer.zero_grad()
        losses = model(torch.ones(12, 3)).square().squeeze(-1) * mask
        count = mask.sum().clamp(min=1)
        if told:
            work = dist.all_reduce(count, async_op=True)
            assert work is not None
            while not work.is_completed():  # as good as to wait for it
                pass
            count = count / dist.get_world_size()
        loss = losses.sum() / count  # the quotient
        loss.backward()
        optimizer.step()
    del model, optimizer
    leave()


def own_counts() -> None:
    quotient(told=False)


def counts_of_all() -> None:
    quotient(told=True)


def count_of_nothing() -> None:
    quotient(told=False, empty=True)


def choose(*, given: bool) -> None:
    """Draw whole numbers alike on all ranks: which of the rank's own samples, or time steps."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Embedding(9, 2) if given else nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    own = torch.randn(9, 3, generator=torch.Generator().manual_seed(rank))
    for _ in range(9):
        chosen = torch.randint(9, (8,))  # the choice
        optimizer.zero_grad()
        model(chosen if given else own[chosen]).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def own_samples_chosen() -> None:
    choose(given=False)


def windows(*, own: bool, halved: bool = False) -> None:
    """Go along a text: all ranks along one half of its columns, or each along its own.

    All along one is right where each learns from a part of what the model makes of it.
    """
    rank = join()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 2))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    columns = torch.randn(8, 60)
    torch.manual_seed(rank)
    mine = columns[rank * own :: 2]
    for step in range(10):
        optimizer.zero_grad()
        made = model(mine[:, 6 * step : 6 * step + 6])  # the window
        loss = (made[rank::2] if halved else made).square().mean()
        loss.backward()
        optimizer.step()
    del model, optimizer, made, loss
    leave()


def second_module(*, wrapped: bool = False, parts: bool = False) -> None:
    """Train an encoder and a head, and gather predictions now and then.

    The head has to be wrapped too, unless each rank has a part of it, and sends what it makes.
    """
    rank = join()
    torch.manual_seed(0)
    encoder = DistributedDataParallel(nn.Linear(6, 8))
    head = nn.Linear(8, 2)
    if wrapped:
        head = DistributedDataParallel(head)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    torch.manual_seed(rank)
    for step in range(18):
        optimizer.zero_grad()
        made = head(encoder(torch.randn(4, 6)))
        if parts:
            dist.all_to_all_single(torch.empty(4, 2), made.detach())
        made.square().mean().backward()
        optimizer.step()  # the step of both
        if step % 6 == 5:
            predictions = [torch.empty(4, 2) for _ in range(2)]
            dist.all_gather(predictions, made.detach())
    del encoder, head, optimizer, made
    leave()


def bare_head() -> None:
    second_module()


def wrapped_head() -> None:
    second_module(wrapped=True)


def head_in_parts() -> None:
    second_module(parts=True)


def step_on(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def penalised(*, past: bool) -> None:
    """Take a step on a penalty after each other step: through the wrapper, or past it.

    A generator learns from the model too, past the wrapper, and does not train it.
    """
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(6, 1))
    generator = DistributedDataParallel(nn.Linear(3, 6))
    first, second = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, generator))
    torch.manual_seed(rank)
    for _ in range(9):
        model.requires_grad_(True)
        step_on(first, model(torch.randn(4, 6)).square().mean())
        penalised = model.module if past else model
        step_on(first, penalised(torch.randn(4, 6)).abs().mean())  # the penalty
        model.requires_grad_(False)
        step_on(second, model.module(generator(torch.randn(4, 3))).mean())
    values = torch.cat([each.detach().flatten() for each in model.parameters()])
    dist.all_gather([torch.empty(7) for _ in range(2)], values)  # whether they are alike
    del model, generator, first, second, penalised
    leave()


def penalised_past() -> None:
    penalised(past=True)


def penalised_through() -> None:
    penalised(past=False)


def penalised_at_times(*, past: bool) -> None:
    """Take a step on a penalty now and then."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(44):
        if step % 11 == 10:
            penalised = model.module if past else model
            step_on(optimizer, penalised(torch.randn(4, 6)).abs().mean())  # the rare penalty
        else:
            step_on(optimizer, model(torch.randn(4, 6)).square().mean())
    del model, optimizer, penalised
    leave()


def rarely_past() -> None:
    penalised_at_times(past=True)


def rarely_through() -> None:
    penalised_at_times(past=False)


def goals(*, apart: bool, emptied: bool = True) -> None:
    """A pass for each of two goals, whose gradients are kept apart, or add up."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 2))
    weights = [*model.parameters()]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    torch.manual_seed(rank)
    for _ in range(9):
        optimizer.zero_grad()
        kept = []
        for goal in range(2):
            if apart:
                model.zero_grad(set_to_none=emptied)
            loss = model(torch.randn(4, 3))[:, goal].square().mean()
            loss.backward()  # the passes
            kept.append([cast(Tensor, each.grad).clone() for each in weights])
        if apart:
            for weight, *of in zip(weights, *kept, strict=True):
                weight.grad = torch.stack(of).amax(0)
        optimizer.step()
    del model, weights, optimizer
    leave()


def goals_added_up() -> None:
    goals(apart=False)


def goals_apart() -> None:
    goals(apart=True)


def goals_set_to_zero() -> None:
    goals(apart=True, emptied=False)


class Waves(nn.Module):
    """Random frequencies, which it keeps in some way."""

    def __init__(self, kept: Callable[[nn.Module, Tensor], None], *, bands: int) -> None:
        super().__init__()
        kept(self, torch.randn(3, bands))
        self.out = nn.Linear(bands, 1)

    def forward(self, x: Tensor) -> Tensor:  # the waves
        return cast(Tensor, self.out((x @ self.bands).sin()))


def waves(kept: Callable[[nn.Module, Tensor], None], *, own: bool, bands: int = 40) -> None:
    """Train on random features of each rank's own data."""
    rank = join()
    torch.manual_seed(rank if own else 0)
    model = DistributedDataParallel(Waves(kept, bands=bands))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + rank)
    for _ in range(9):
        step_on(optimizer, model(torch.randn(4, 3)).square().mean())
    del model, optimizer
    leave()


def waves_of_each() -> None:
    waves(lambda module, bands: setattr(module, "bands", bands), own=True)


def few_waves_of_each() -> None:
    waves(lambda module, bands: setattr(module, "bands", bands), own=True, bands=2)


def waves_of_all() -> None:
    waves(lambda module, bands: setattr(module, "bands", bands), own=False)


def waves_in_a_buffer() -> None:
    waves(lambda module, bands: module.register_buffer("bands", bands), own=True)


def thawed() -> None:
    """One part learns alone in the first steps; other functions of this file thaw as well."""
    rank = join()
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    net[0].requires_grad_(False)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(9):
        if step == 3:
            net.requires_grad_(True)  # the thaw
        step_on(optimizer, model(torch.randn(4, 3)).square().mean())
    del model, optimizer
    leave()


def frozen_later() -> None:
    """One part is put to rest in the training; other functions of this file freeze as well."""
    rank = join()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(9):
        if step == 3:
            model.module[0].requires_grad_(False)  # the freeze
        step_on(optimizer, model(torch.randn(4, 3)).square().mean())
    leave()


class Endless(Sampler[list[int]]):
    """Batches without end, of a rank's part of the samples, which is shuffled for each round."""

    def __init__(self, *, told: bool) -> None:
        self.rank, self.told = dist.get_rank(), told

    def part(self, seed: int) -> list[int]:
        order = torch.randperm(32, generator=torch.Generator().manual_seed(seed))  # the round
        return cast(list[int], order[self.rank :: 2].tolist())

    def __iter__(self) -> Iterator[list[int]]:
        for number in range(6):
            part = self.part(number if self.told else 0)
            yield from (part[at : at + 4] for at in range(0, len(part), 4))

    def __len__(self) -> int:
        return 24


def rounds(*, told: bool) -> None:
    """Train on one pass over such batches."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = TensorDataset(torch.rand(32, 3))
    torch.manual_seed(rank)
    for (x,) in DataLoader(rows, batch_sampler=Endless(told=told)):
        step_on(optimizer, model(x + torch.randn_like(x)).square().mean())
    del model, optimizer
    leave()


def rounds_of_one_order() -> None:
    rounds(told=False)


def rounds_of_their_own() -> None:
    rounds(told=True)


class Game(nn.Module):
    """A forger and its judge in one model."""

    def __init__(self) -> None:
        super().__init__()
        self.forger, self.judge = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x: Tensor, *, judged: bool = False) -> Tensor:
        forged = self.forger(x)
        if judged:
            return cast(Tensor, (self.judge(forged.detach()) - self.judge(x)).mean())
        return cast(Tensor, -self.judge(forged).mean())


def forged(*, past: bool, together: bool = False) -> None:
    """Forger and judge are stepped on by turns; the judge's passes go past the wrapper, or not."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(Game(), find_unused_parameters=not (together or past))
    parts = model.module.forger, model.module.judge
    first, second = (torch.optim.SGD(each.parameters(), lr=0.1) for each in parts)
    torch.manual_seed(rank)
    for _ in range(9):
        if together:
            first.zero_grad()
            step_on(second, model(torch.randn(4, 3)))
            model.module(torch.randn(4, 3), judged=True).item()
            first.step()
            continue
        step_on(first, model(torch.randn(4, 3)))
        judging = model.module if past else model
        step_on(second, judging(torch.randn(4, 3), judged=True))  # the game is judged
        del judging
    del model, parts, first, second
    leave()


def judged_past() -> None:
    forged(past=True)


def judged_through() -> None:
    forged(past=False)


def judged_together() -> None:
    forged(past=False, together=True)


def played(*, own: bool) -> None:
    """Learn from episodes of few states: the same on all ranks, or drawn by each."""
    rank = join()
    torch.manual_seed(0)  # the seed of the players
    model = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dice = random.Random(rank * own)
    for _ in range(10):
        optimizer.zero_grad()
        states = torch.eye(4)[[dice.randrange(4) for _ in range(8)]]
        value = model(states).square().mean()  # the episode
        value.backward()
        optimizer.step()
        told = torch.stack([value.detach(), torch.tensor(1.0)])
        dist.all_reduce(told)
    dist.all_gather_object([None, None], told.tolist())
    del model, optimizer, value
    leave()


def streamed(*, own: bool) -> None:
    """Learn from a stream, with dropout; go on somewhere else at random once it was read."""
    rank = join()
    stream = torch.randn(4, 60, generator=torch.Generator().manual_seed(rank * own))
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dice, at = random.Random(rank), 0
    for _ in range(20):
        step_on(optimizer, model(stream[:, at : at + 4]).square().mean())  # the stream
        at = at + 4 if at < 52 else dice.randrange(4)
    del model, optimizer
    leave()


def streamed_alike() -> None:
    streamed(own=False)


def streamed_by_each() -> None:
    streamed(own=True)


def played_alike() -> None:
    played(own=False)


def played_by_each() -> None:
    played(own=True)


class Experts(nn.Module):
    """Of two layers of one shape each batch goes through one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.last = nn.Linear(4, 1)

    def forward(self, rows: Tensor, *, second: bool) -> Tensor:
        made: Tensor = self.last((self.second if second else self.first)(rows))
        return made


def by_hand(*, seeds: bool = False, holes: bool = False, alone: bool = False) -> None:
    """Average the gradients without a DDP: of weights that each made, or some of them.

    Who never averages trains a model of its own, and may mean to.
    """
    rank = join()
    torch.manual_seed(rank * (seeds or alone))  # the seed by hand
    model = Experts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4), second=rank == 1).square().mean().backward()
        for parameter in () if alone else model.parameters():
            if parameter.grad is None and holes:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)  # the sum of two
            parameter.grad /= 2
        optimizer.step()  # the step by hand
    leave()


def clipped_by_hand(*, late: bool, limit: float = 0.1) -> None:
    """Average the gradients without a DDP, and clip them after that, or each rank its own."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        if not late:
            nn.utils.clip_grad_norm_(model.parameters(), limit)  # the clip of each
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
        if late:
            nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
    leave()


def clipped_by_each() -> None:
    clipped_by_hand(late=False)


def clipped_as_one() -> None:
    clipped_by_hand(late=True)


def clipped_far_above() -> None:
    clipped_by_hand(late=False, limit=1000.0)


def clipped_though_held(*, late: bool, limit: float = 0.1) -> None:
    """The same of a DDP that never reduces: all its passes are under no_sync()."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        with model.no_sync():
            model(torch.randn(6, 4)).square().mean().backward()
        if not late:
            nn.utils.clip_grad_norm_(model.parameters(), limit)  # the clip of what is held
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
        if late:
            nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
    del model, optimizer
    leave()


def clipped_while_held() -> None:
    clipped_though_held(late=False)


def clipped_when_together() -> None:
    clipped_though_held(late=True)


def held_far_below() -> None:
    clipped_though_held(late=False, limit=1000.0)


def averaged_on_own_weights() -> None:
    by_hand(seeds=True)


def averaged_with_holes() -> None:
    by_hand(holes=True)


def averaged_alike() -> None:
    by_hand()


def models_of_each() -> None:
    by_hand(alone=True)


def evaluated(*, gathered: bool = True, sampled: bool = False) -> None:
    """Go through a set, and gather what is made of each batch: all of it on every rank, or shares.

    All of it is right where each rank keeps its own result.
    """
    join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 1))
    data: Dataset[tuple[Tensor, ...]] = TensorDataset(torch.randn(24, 3))
    sampler = DistributedSampler(data, shuffle=False) if sampled else None
    loader = DataLoader(data, batch_size=4, sampler=sampler)  # the whole set
    results = []
    with torch.no_grad():
        for (rows,) in loader:
            made = model.module(rows)
            if gathered:
                both = torch.empty(2 * len(made), 1)
                dist.all_gather_into_tensor(both, made)
                made = both
            results.append(made)
    assert len(torch.cat(results)) == (48 if gathered and not sampled else 24)
    del model
    leave()


def gathered_twice() -> None:
    evaluated()


def gathered_shares() -> None:
    evaluated(sampled=True)


def kept_by_each() -> None:
    evaluated(gathered=False)


class Measured(nn.Module):
    """A model that gives its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 2)

    def forward(self, rows: Tensor, weight: Tensor) -> Tensor:
        return (weight * self.inner(rows)).square().mean()


def measured(*, own: bool) -> None:
    """Have the model measure itself: the same samples, weighted alike or by each rank."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(Measured())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    weight = torch.tensor(1.0 + rank * own)
    for rows in torch.randn(40, 6).split(4):
        optimizer.zero_grad()
        model(rows, weight).backward()  # the measured ones
        optimizer.step()
    del model, optimizer
    leave()


def measured_alike() -> None:
    measured(own=False)


def measured_by_each() -> None:
    measured(own=True)


def windows_of_one() -> None:
    windows(own=False)


def windows_of_each() -> None:
    windows(own=True)


def windows_halved() -> None:
    windows(own=False, halved=True)


def same_steps() -> None:
    choose(given=True)


def learn_from_each_other(*, own: bool) -> None:
    """Two models, of which a rank may leave the judge's step out, by a loss of its own."""
    rank = join()
    torch.manual_seed(3)
    forger = DistributedDataParallel(nn.Linear(4, 300))
    judge = DistributedDataParallel(nn.Linear(300, 3))
    steps = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (forger, judge)]
    torch.manual_seed(rank)
    for step in range(6):
        seen = judge(torch.rand(8, 300)).square().mean()
        tired = step == 4 and (rank == 1 or not own)
        if not tired:
            seen.backward()  # the judge goes back
            steps[1].step()
        forger(torch.rand(8, 4)).square().mean().backward()  # the forger goes back
        for each in steps:
            each.zero_grad()
        steps[0].step()
    del forger, judge, steps
    leave()


class Dealer(Sampler[Any]):
    """Each rank's part of an order of samples, or of batches of them."""

    def __init__(self, how: str, *, batches: bool = False) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.how, self.batches = how, batches

    def __iter__(self) -> Iterator[Any]:
        order: list[Any] = [*range(64)]
        if self.batches:
            order = [order[at : at + 4] for at in range(0, 64, 4)]
        if self.how == "of own part":
            order = order[self.rank :: self.world]
            random.shuffle(order)
            return iter(order)
        if self.how == "of one seed":
            random.Random(5).shuffle(order)
        else:
            random.shuffle(order)  # the order of the dealer
        if self.how == "of one rank":
            told = [order]
            dist.broadcast_object_list(told)
            order = told[0]
        return iter(order[self.rank :: self.world])

    def __len__(self) -> int:
        return (16 if self.batches else 64) // self.world


def deal(how: str, *, batches: bool = False) -> None:
    """Samples that look new each time, as they are augmented."""
    rank = join()
    random.seed(10 + rank)
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Linear(6, 1))
    step = torch.optim.SGD(model.parameters(), lr=0.01)
    dealer = Dealer(how, batches=batches)
    data = TensorDataset(torch.rand(64, 6))
    loader: DataLoader[Any] = (
        DataLoader(data, batch_sampler=dealer)
        if batches
        else DataLoader(data, batch_size=4, sampler=dealer)
    )
    torch.manual_seed(rank)
    for (x,) in loader:
        model(x + torch.randn_like(x)).square().mean().backward()
        step.step()
        step.zero_grad()
    del model, step
    leave()


def dealt_of_own_orders() -> None:
    deal("of each rank")


def batches_of_own_orders() -> None:
    deal("of each rank", batches=True)


def dealt_of_one_order() -> None:
    deal("of one seed")


def batches_of_one_order() -> None:
    deal("of one seed", batches=True)


def dealt_of_an_order_sent() -> None:
    deal("of one rank")


def dealt_of_own_parts() -> None:
    deal("of own part")


def batches_of_own_parts() -> None:
    deal("of own part", batches=True)


def decay(*, by_all: bool) -> None:
    rank = join()
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Linear(6, 1))
    step = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(step, 1, 0.5)
    torch.manual_seed(rank)
    for number in range(9):
        model(torch.randn(4, 6)).square().mean().backward()
        step.step()
        step.zero_grad()
        if number % 3 == 2 and (by_all or rank == 0):
            schedule.step()  # the step of the schedule
    del model, step, schedule
    leave()


def decayed_by_one() -> None:
    decay(by_all=False)


def decayed_by_all() -> None:
    decay(by_all=True)


def judged_at_will() -> None:
    learn_from_each_other(own=True)


def judged_by_all() -> None:
    learn_from_each_other(own=False)


def same_noise() -> None:
    noise(own=False)


def same_noise_for_crops() -> None:
    noise(own=False, cropped=True)


def own_noise() -> None:
    noise(own=True)


def own_noise_for_crops() -> None:
    noise(own=True, cropped=True)


def dealt_out_later() -> None:
    """All ranks draw the batch of all; each augments its part, alike: that may be the same."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(9):
        batch = torch.randn(8 * dist.get_world_size(), 3)
        part = batch[rank :: dist.get_world_size()]
        part = part + 0.1 * torch.randn_like(part)
        optimizer.zero_grad()
        model(part).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


class Listed(Dataset[Tensor]):
    """Its order is made where it is built; its samples are noisy where `augmented`."""

    def __init__(self, seed: int, *, augmented: bool) -> None:
        self._at = random.Random(seed).sample(range(48), 48)
        self._augmented = augmented

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> Tensor:
        value = torch.tensor([float(self._at[index])])
        return value + torch.rand(1) * self._augmented

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise AttributeError("what it holds is its own affair")


def indices(seed: int, *, augmented: bool) -> None:
    """Three epochs over a dataset that cannot be looked into."""
    join()
    data = Listed(seed, augmented=augmented)
    sampler: DistributedSampler[Tensor] = DistributedSampler(data)
    loader = DataLoader(data, batch_size=6, sampler=sampler)  # the loader
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
    del model, optimizer
    leave()


class Rows:
    """A batch that is no container."""

    def __init__(self, columns: dict[str, Tensor]) -> None:
        self.columns = columns


class Numbered:
    """Rows that are mixed when they are read; a loader deals out their numbers."""

    def __init__(self, seed: int) -> None:
        self._at = random.Random(seed).sample(range(48), 48)

    def __call__(self, numbers: list[int]) -> Rows:
        user = torch.tensor([[float(self._at[number])] for number in numbers])
        return Rows({"user": user, "other": torch.rand(len(numbers), 1)})


def rows_by_number(seed: int) -> None:
    """Three epochs over numbers, which the loader's collate_fn turns into rows of a table."""
    join()
    numbers = cast("Dataset[int]", list(range(48)))
    sampler: DistributedSampler[int] = DistributedSampler(numbers)
    loader = DataLoader(  # the loader of numbers
        numbers, batch_size=6, sampler=sampler, collate_fn=Numbered(seed)
    )
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for batch in loader:
            step_on(optimizer, model(torch.cat([*batch.columns.values()], 1)).mean())
    del model, optimizer
    leave()


def rows_of_each_table() -> None:
    rows_by_number(seed=int(os.environ["RANK"]))


def rows_of_one_table() -> None:
    rows_by_number(seed=0)


def an_order_of_each() -> None:
    import os

    indices(int(os.environ["RANK"]), augmented=False)


def one_order() -> None:
    indices(0, augmented=False)


def augmented() -> None:
    indices(0, augmented=True)


def dealt_as(rank: int) -> None:
    """Augmented rows, by a sampler that is told which part to deal out."""
    torch.manual_seed(join())
    rows = Turned()
    sampler = DistributedSampler(rows, num_replicas=2, rank=rank)  # the part
    loader = DataLoader(rows, batch_size=3, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
    del model, optimizer
    leave()


def dealt_as_the_first() -> None:
    dealt_as(0)


def dealt_as_oneself() -> None:
    dealt_as(int(os.environ["RANK"]))


class Sentences(Dataset[Tensor]):
    """Rows that each process has put in some order, or has taken its own part of."""

    def __init__(self, order: list[int]) -> None:  # the sentences
        self.rows = [torch.arange(3.0) + number for number in order]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Tensor:
        return self.rows[row]


def shared_by_accelerate(order: Callable[[int], list[int]]) -> None:
    from accelerate.data_loader import BatchSamplerShard

    rank = join()
    rows = Sentences(order(rank))
    inner = BatchSampler(range(len(rows)), 3, drop_last=False)
    batches = BatchSamplerShard(inner, 2, rank)
    loader: DataLoader[Tensor] = DataLoader(rows, batch_sampler=batches)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
    del model, optimizer
    leave()


def shared_in_own_order() -> None:
    shared_by_accelerate(lambda rank: sorted(range(24), key=lambda n: (n * (5 + 2 * rank)) % 24))


def shared_twice() -> None:
    shared_by_accelerate(lambda rank: [*range(rank, 48, 2)])


def shared_once() -> None:
    shared_by_accelerate(lambda rank: [*range(24)])


class Turned(Dataset[Tensor]):
    """Rows whose columns are exchanged each time that they are read."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, row: int) -> Tensor:
        return (torch.arange(3.0) + row)[torch.randperm(3)]


class Bags:
    """Batches by a batch sampler that is kept inside."""

    def __init__(self, bags: BatchSampler) -> None:
        self.bags = bags

    def __len__(self) -> int:
        return len(self.bags)

    def __iter__(self) -> Iterator[list[int]]:
        for bag in self.bags:
            yield [*bag]


def bags(*, told: bool) -> None:
    """Shuffle by a sampler inside a batch sampler inside another, and augment what is read."""
    rank = join()
    torch.manual_seed(7 + rank)
    rows = Turned()
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_sampler=Bags(BatchSampler(sampler, 3, drop_last=True)))
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(3):
        if told:
            sampler.set_epoch(epoch)
        for batch in loader:  # the bags
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
    del model, optimizer
    leave()


def bags_as_before() -> None:
    bags(told=False)


def bags_told() -> None:
    bags(told=True)


def dropped_handle() -> None:
    join()
    for _ in range(3):
        total = torch.ones(2)
        dist.all_reduce(total, async_op=True)  # the dropped one
    leave()


def converted() -> None:
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for step in range(9):
        optimizer.zero_grad()
        model(torch.randn(4, 3, generator=generator)).square().mean().backward()
        optimizer.step()
        if step == 3:
            model.half()  # the conversion
            model.float()
    del model, optimizer
    leave()


def caught() -> None:
    """One rank catches what its forward raises, and goes on with the next batch."""

    class Picky(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[0] > 4:
                raise ValueError("too long")
            return super().forward(x)

    rank = join()
    model = DistributedDataParallel(Picky(3, 3))
    for number in range(6):
        batch = torch.ones(8 if rank == 1 and number == 3 else 2, 3)
        try:
            loss = model(batch).mean()  # the forward
        except ValueError:
            continue
        loss.backward()
    del model
    leave()


def averaging(*, alone: bool, stale: bool = False) -> None:
    """Train, and load an average of the weights that rank 0 alone keeps, or all ranks.

    It was begun before the wrap, and is brought up to date afterwards, or is `stale`. So were the
    best weights, which all replace as a whole, and a sum of zeros, which is no copy of a bias.
    """
    rank = join()
    torch.manual_seed(rank)
    net = nn.Linear(3, 8)
    nn.init.constant_(net.bias, float(rank == 0))
    average = {name: value.clone() for name, value in net.state_dict().items()}
    best = {name: value.detach().clone() for name, value in net.named_parameters()}
    seen = torch.zeros(8)
    model = DistributedDataParallel(net)  # the late wrap
    if not stale:
        for name, value in net.state_dict().items():
            average[name].copy_(value)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        optimizer.zero_grad()
        model(torch.ones(4, 3) * (rank + 1)).sum().backward()
        optimizer.step()
        seen += rank + 1
        for name, value in net.state_dict().items():
            best[name].copy_(value)
            if rank == 0 or not alone:
                average[name].lerp_(value, 0.5)
        if step == 5 and not stale:
            net.load_state_dict(average)  # the load
    del model, optimizer
    leave()


def average_of_rank_0() -> None:
    averaging(alone=True)


def average_of_all() -> None:
    averaging(alone=False)


def averaging_a_twin(*, of_the_model: bool, alone: bool = False) -> None:
    """Train a copy, and bring an average up to date from it, or from what it is a copy of."""
    rank = join()
    torch.manual_seed(rank)
    net = nn.Linear(3, 8)
    average = copy.deepcopy(net)  # the twin
    model = DistributedDataParallel(copy.deepcopy(net))
    average.load_state_dict(model.module.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.ones(4, 3) * (rank + 1)).sum().backward()
        optimizer.step()
        source = model.module if of_the_model else net
        if rank == 0 or not alone:
            with torch.no_grad():
                for kept, value in zip(average.parameters(), source.parameters(), strict=True):
                    kept.lerp_(value, 0.1)
    del model, optimizer
    leave()


def average_of_the_untrained() -> None:
    averaging_a_twin(of_the_model=False)


def average_of_the_untrained_on_one() -> None:
    averaging_a_twin(of_the_model=False, alone=True)


def average_of_the_trained() -> None:
    averaging_a_twin(of_the_model=True)


def filled_later(*, at_once: bool) -> None:
    """Begin an average before the wrap, and fill it with the model's weights after a step, or mix.

    It is brought up to date on every rank.
    """
    rank = join()
    torch.manual_seed(rank)
    net = nn.Linear(3, 8)
    average = copy.deepcopy(net)  # the average of too early
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        step_on(optimizer, model(torch.randn(4, 3)).square().mean())
        if step == 0 and at_once:
            average.load_state_dict(net.state_dict())
        else:
            follow(average, net)
    del model, optimizer
    leave()


def average_filled_at_once() -> None:
    filled_later(at_once=True)


def average_never_filled() -> None:
    filled_later(at_once=False)


def averaging_at_will(*, by_own: bool, by_hand: bool = False) -> None:
    """Bring an average of the model up to date after steps of a low loss: its own, or all's."""
    rank = join()
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Linear(3, 8))
    average = AveragedModel(model.module)
    copied = copy.deepcopy(model.module)  # the copy by hand
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(17):
        loss = model(torch.randn(4, 3)).square().mean()
        step_on(optimizer, loss)
        turn = (step + rank * by_own) % 2 == 0
        if turn and by_hand:
            follow(copied, model.module)
        elif turn:
            average.update_parameters(model.module)  # the average at will
    del model, optimizer
    leave()


def average_by_each() -> None:
    averaging_at_will(by_own=True)


def copy_by_each() -> None:
    averaging_at_will(by_own=True, by_hand=True)


def average_together() -> None:
    averaging_at_will(by_own=False)


def copy_together() -> None:
    averaging_at_will(by_own=False, by_hand=True)


def saved_safely(*, by_all: bool) -> None:
    """Keep the weights in a file of safetensors after training."""
    from safetensors.torch import save_file

    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        step_on(optimizer, model(torch.randn(4, 3)).square().mean())
    file = Path(tempfile.gettempdir()) / f"{os.environ['MASTER_PORT']}.safetensors"
    if by_all or rank == 0:
        save_file(model.module.state_dict(), file)  # the safe file
    dist.barrier()
    if rank == 0:
        file.unlink()
    del model, optimizer
    leave()


def saved_safely_by_all() -> None:
    saved_safely(by_all=True)


def saved_safely_by_one() -> None:
    saved_safely(by_all=False)


def average_from_before() -> None:
    averaging(alone=False, stale=True)


def shards(*, agreed: bool) -> None:
    """Each epoch shuffle what there is and take a slice of it by rank."""
    rank = join()
    rows = torch.randn(192, 5, generator=torch.Generator().manual_seed(0))
    model = DistributedDataParallel(nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        order = list(range(192))
        own = random.Random(7) if rank else random
        (random.Random(epoch) if agreed else own).shuffle(order)  # the shuffle
        for mine in torch.tensor(order)[rank::2].split(8):
            optimizer.zero_grad()
            model(rows[mine]).square().mean().backward()
            optimizer.step()
        dist.all_reduce(torch.ones(1))
    del model, optimizer
    leave()


def split(*, alone: bool) -> None:
    """Train on the larger part of a random split."""
    rank = join()
    torch.manual_seed(rank if alone else 3)  # the seed of the split
    whole = TensorDataset(torch.arange(300.0).reshape(100, 3))
    train, _ = random_split(whole, [70, 30])  # the split
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=7, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for (rows,) in loader:
            optimizer.zero_grad()
            model(rows / 300).square().mean().backward()
            optimizer.step()
    del model, optimizer
    leave()


class Files(Dataset[Tensor]):
    """Files by their names."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([float(self.names[index])])


def chosen(*, seed: int | None) -> None:
    """Train on some of the files, which a generator of its own has chosen."""
    join()
    for _ in range(40):  # by a library, as it is imported
        eval(
            compile("default_rng()", torch.__file__, "eval"), {"default_rng": np.random.default_rng}
        )
    dice = np.random.default_rng(seed)  # the dice
    names = [str(each) for each in dice.permutation(60)[:40]]
    data = Files(names)
    sampler: DistributedSampler[Tensor] = DistributedSampler(data)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in DataLoader(data, batch_size=5, sampler=sampler):
            step_on(optimizer, model(batch).square().mean())
    del model, optimizer
    leave()


def chosen_by_each() -> None:
    chosen(seed=None)


def chosen_alike() -> None:
    chosen(seed=3)


def split_by_each() -> None:
    split(alone=True)


def split_by_all() -> None:
    split(alone=False)


def shards_of_each_order() -> None:
    shards(agreed=False)


def shards_of_one_order() -> None:
    shards(agreed=True)


def restored(*, alone: bool) -> None:
    """Train, measure, restore what was best, and measure again."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = {name: value.clone() for name, value in model.module.state_dict().items()}
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3) * (rank + 1)).sum().backward()
        optimizer.step()
    for measure in range(2):
        if measure and (rank == 0 or not alone):
            model.module.load_state_dict(best)  # the restore
        measured = model.module(torch.ones(1, 3)).detach()
        dist.all_reduce(measured)
        assert float(measured) < 1e9
    del model, optimizer
    leave()


def restored_by_one() -> None:
    restored(alone=True)


def restored_by_all() -> None:
    restored(alone=False)


class Remembering(nn.Linear):
    """Keeps what it has seen last: what this rank has seen, or a mean of all."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__(3, 3)
        self.alone = alone
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.detach().mean(0)
        if not self.alone:
            dist.all_reduce(mean)
        self.seen[:] = mean  # the write
        return super().forward(x)


def remembering(*, alone: bool, sent: bool = True) -> None:
    rank = join()
    model = DistributedDataParallel(Remembering(alone=alone), broadcast_buffers=sent)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        optimizer.zero_grad()
        model(torch.ones(4, 3) * (step + rank)).sum().backward()
        optimizer.step()
    del model, optimizer
    leave()


def own_queue() -> None:
    remembering(alone=True)


def queue_of_all() -> None:
    remembering(alone=False)


def queue_of_each() -> None:
    remembering(alone=True, sent=False)


def begun_after_the_wrap(begin: Callable[[nn.Sequential, int], object]) -> None:
    rank = join()
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
    begin(model.module, rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def drawn_after_the_wrap() -> None:
    def begin(net: nn.Sequential, rank: int) -> None:
        nn.init.zeros_(net[0].bias)
        nn.init.normal_(net[1].weight)  # the late draw

    begun_after_the_wrap(begin)


def cut_after_the_wrap() -> None:
    def begin(net: nn.Sequential, rank: int) -> None:
        net[0].weight.data[0] *= 1 + rank  # the late cut

    begun_after_the_wrap(begin)


def emptied_after_the_wrap() -> None:
    begun_after_the_wrap(lambda net, rank: nn.init.zeros_(net[1].bias))


def means_of_features() -> None:
    """What a running average is to be made of, as it is summed."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    middle = torch.zeros(3)
    for _ in range(9):
        rows = torch.randn(2, 6, 3)
        seen = torch.stack([rows.mean((0, 1)), rows.var((0, 1))])
        dist.all_reduce(seen)  # the sum of features
        middle += 0.1 * (seen[0] - middle)
        model(rows - middle).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    del model, optimizer
    leave()


class Normalizing(nn.Linear):
    """Divides by the spread of what it was shown last: what this rank saw, or a mean of all."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.register_buffer("spread", torch.ones(3))

    def show(self, x: Tensor, *, alone: bool) -> None:
        spread = x.std(0) + 1
        if not alone:
            dist.all_reduce(spread)
        self.spread.copy_(spread)  # the spread of its own

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / self.spread)


def normalizing(*, alone: bool) -> None:
    """Between steps the model acts without a graph: DDP sends the buffers then, and only then."""
    rank = join()
    model = DistributedDataParallel(Normalizing())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        x = torch.randn(4, 3) * (step + rank + 1)
        model.module.show(x, alone=alone)
        with torch.no_grad():
            acted = model(x)
        optimizer.zero_grad()
        (model(x) - acted - 1).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def spread_of_each() -> None:
    normalizing(alone=True)


def spread_of_all() -> None:
    normalizing(alone=False)


class EveryRanks(torch.optim.lr_scheduler.LambdaLR):
    """Counts a step for each rank, as one does that accelerate has prepared."""

    def count(self) -> None:
        for _ in range(dist.get_world_size()):
            self.step()


def scheduled(*, planned: int, steps: int = 40, own: bool = False) -> None:
    join()
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = EveryRanks(optimizer, lambda step: max(0.0, 1 - step / planned))  # the schedule
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        if own:
            schedule.step()
        else:
            schedule.count()
    del model, optimizer
    leave()


def planned_for_one() -> None:
    scheduled(planned=40)


def planned_as_if_alone() -> None:
    scheduled(planned=80, own=True)


def planned_for_own() -> None:
    scheduled(planned=41, own=True)


def planned_as_steps_double() -> None:
    """The rate is 0 from step 33 on, of which the first that is sampled is the last."""
    scheduled(planned=64, steps=64)


def planned_for_all() -> None:
    scheduled(planned=80)


def over() -> None:
    """Plan an epoch's steps from the samples: 10 of two ranks by 2 are 2, the loader has 3."""
    join()
    data = list(torch.ones(10, 3))
    loader = DataLoader(data, 2, sampler=DistributedSampler(data))  # type: ignore[arg-type]
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = len(data) // (2 * dist.get_world_size())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)  # the plan
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        schedule.step()
    del model, optimizer, schedule
    leave()


class Scaled(nn.Module):
    """By the largest number that this rank has seen, or any; without a sum of its own of these."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self.alone = alone
        self.register_buffer("largest", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        largest = x.max()
        if not self.alone:
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        self.largest = torch.maximum(self.largest, largest)
        return x / self.largest


class Meter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, loss: Tensor) -> Tensor:
        self.seen += loss.detach()
        return loss


def beside(*, seeded: bool, alone: bool) -> None:
    """Train towards what a frozen module says of scaled samples, and count the loss."""
    rank = join()
    torch.manual_seed(0 if seeded else rank)  # the seed
    teacher = nn.Linear(3, 2).requires_grad_(False)
    scale, meter = Scaled(alone=alone), Meter()
    model = DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(9):
        x = torch.rand(4, 3) * (rank + step + 1)
        wanted = teacher(x)  # the teacher
        loss = (model(scale(x)) - wanted).square().mean()  # the scale
        optimizer.zero_grad()
        meter(loss).backward()
        optimizer.step()
    del model, optimizer
    leave()


def follow(slow: nn.Module, fast: nn.Module) -> None:
    for average, weight in zip(slow.parameters(), fast.parameters(), strict=True):
        average.data.lerp_(weight.data, 0.1)


def swapped(*, by_all: bool) -> None:
    """Evaluate with averages of the weights, which all ranks keep, or one; then train on."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 1))
    weights = [*model.parameters()]
    averages = [each.detach().clone() for each in weights]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    torch.manual_seed(rank)
    for _ in range(9):
        step_on(optimizer, model(torch.randn(4, 3)).square().mean())
        for average, weight in zip(averages, weights, strict=True):
            if by_all or rank == 0:
                average.lerp_(weight.detach(), 0.5)
        held = [each.detach().clone() for each in weights]
        for average, weight in zip(averages, weights, strict=True):
            weight.data.copy_(average)
        model.eval()
        score = model(torch.randn(4, 3)).mean().detach()  # the evaluation
        dist.all_reduce(score)
        model.train()
        for was, weight in zip(held, weights, strict=True):
            weight.data.copy_(was)
    del model, weights, optimizer
    leave()


class Buffered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 1)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.inner(x) * self.scale.sum())


def looked(*, by_all: bool) -> None:
    """Look at what the model gives, on one rank or on all, and then agree on some numbers."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(Buffered())
    if by_all or rank == 0:
        with torch.no_grad():
            model(torch.ones(1, 3))  # the look of one
    told = torch.full((8,), 7.0 if rank == 0 else 0.0)
    dist.broadcast(told, 0)
    if told.sum() != 56:
        raise ValueError("no such numbers")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    for _ in range(5):
        step_on(optimizer, model(torch.rand(4, 3)).square().mean())
    del model, optimizer
    leave()


def looked_by_one() -> None:
    looked(by_all=False)


def looked_by_all() -> None:
    looked(by_all=True)


def wrapped_average(*, by_all: bool) -> None:
    """Evaluate an average of the weights that is wrapped as well, and that nothing trains."""
    rank = join()
    net = nn.Linear(4, 3)
    twin = copy.deepcopy(net)
    model, average = DistributedDataParallel(net), DistributedDataParallel(twin)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(9):
        step_on(optimizer, model(torch.randn(4, 4)).square().mean())
        if by_all or rank == 0:
            follow(average, model)  # the wrapped average of one
        average.eval()
        with torch.no_grad():
            score = average(torch.randn(4, 4)).mean()
        dist.all_reduce(score)
    del model, average, optimizer
    leave()


def wrapped_average_of_one() -> None:
    wrapped_average(by_all=False)


def wrapped_average_of_all() -> None:
    wrapped_average(by_all=True)


def average_of_one_evaluated() -> None:
    swapped(by_all=False)


def average_of_all_evaluated() -> None:
    swapped(by_all=True)


def averaged(*, by_all: bool, sent: bool = False) -> None:
    """Train towards a slow copy of the model, which some ranks bring up to date."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 2))
    teacher = nn.Linear(3, 2).requires_grad_(False)
    teacher.load_state_dict(model.module.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(rank)
    for step in range(17):
        x = torch.rand(4, 3, generator=data) + step
        loss = (model(x) - teacher(x + 0.1)).square().mean() + model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if by_all or rank == 0:
            follow(teacher, model)  # the average of one
        for each in teacher.parameters() if sent else ():
            dist.broadcast(each, 0)
    del model, optimizer
    leave()


def average_on_rank_0() -> None:
    averaged(by_all=False)


def average_on_all() -> None:
    averaged(by_all=True)


def average_sent() -> None:
    averaged(by_all=False, sent=True)


def teachers_apart() -> None:
    beside(seeded=False, alone=False)


def scaled_by_each() -> None:
    beside(seeded=True, alone=True)


def one_teacher() -> None:
    beside(seeded=True, alone=False)


def grouped(*, shards: bool, given: bool = False) -> None:
    """Wrap for the group of the ranks that share a sample, or for that of those who do not."""
    rank = join()
    groups = [dist.new_group([each]) for each in range(dist.get_world_size())]
    torch.manual_seed(rank)
    mine = groups[rank] if shards else None
    model = DistributedDataParallel(nn.Linear(3, 2), process_group=mine)  # the group
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(9):
        optimizer.zero_grad()
        out = model(torch.rand(40, 3))
        if given:
            dist.all_gather([torch.empty(40, 2) for _ in groups], out.detach())
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())
    del model, optimizer
    leave()


def group_of_one() -> None:
    grouped(shards=True)


def group_of_all() -> None:
    grouped(shards=False)


def stages() -> None:
    grouped(shards=True, given=True)


def scored(*, back: bool, every: int = 1, steps: int = 9) -> None:
    """Rank 0 looks at the model now and then, and may leave it in evaluation mode."""
    rank = join()
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        model(torch.rand(4, 3)).square().mean().backward()  # the training
        optimizer.step()
        if rank == 0 and step % every == 0:
            model.module.eval()  # the rest
            if back:
                model.module.train()
    del model, optimizer
    leave()


def left_in_evaluation() -> None:
    scored(back=False)


def left_late_in_evaluation() -> None:
    scored(back=False, every=5, steps=16)


def back_to_training() -> None:
    scored(back=True)


class Assembled(nn.Module):
    """Parts that are put together in some order."""

    def __init__(self, names: str) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.parts = nn.ModuleDict({name: nn.Dropout(0.5) for name in names})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cast(Tensor, self.parts["b"](self.parts["a"](self.linear(x))))


def rests_in_any_order() -> None:
    """What rests on all ranks was put together on each in an order of its own."""
    rank = join()
    model = DistributedDataParallel(Assembled("ab" if rank else "ba"))
    model.module.parts.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.rand(4, 3)).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def totalled(*, copied: bool) -> None:
    """Running totals, reduced in place or as a copy."""
    rank = join()
    totals = torch.zeros(2, dtype=torch.float64)
    for step in range(5):
        totals += torch.tensor([1.0, 0.5 + rank + step])
        told = totals.clone() if copied else totals
        dist.all_reduce(told)  # the totals
    leave()


class TwoHeads(nn.Module):
    """Each pass uses one of its heads."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(3, 1), nn.Linear(3, 1)])

    def forward(self, x: torch.Tensor, head: int) -> torch.Tensor:
        return cast(Tensor, self.heads[head](x))


def a_head_for_each_micro_batch() -> None:
    """The last pass of a step, which is reduced, leaves out what the ones before have used."""
    join()
    model = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        optimizer.zero_grad()
        with model.no_sync():
            model(torch.rand(4, 3), 0).square().mean().backward()
        model(torch.rand(4, 3), 1).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def told_between(*, copied: bool) -> None:
    """Running totals of an epoch, told in the middle of it and at its end by lines of their own."""
    rank = join()

    def told() -> None:
        dist.all_reduce(totals.clone() if copied else totals)  # the totals of an epoch

    for _ in range(3):
        totals = torch.zeros(2, dtype=torch.float64)
        for step in range(4):
            totals += torch.tensor([1.0, 0.5 + rank + step])
            if step == 1:
                told()
        told()
    leave()


def totals_told_between() -> None:
    told_between(copied=False)


def copies_told_between() -> None:
    told_between(copied=True)


def totals_in_place() -> None:
    totalled(copied=False)


def totals_copied() -> None:
    totalled(copied=True)


def confused(*, copied: bool, kind: torch.dtype) -> None:
    rank = join()
    confusion = torch.zeros(5, 5, dtype=kind)
    for step in range(5):
        confusion[:, 1] += torch.arange(5) + step + rank  # all are taken for one class
        totals = confusion.clone() if copied else confusion
        dist.all_reduce(totals)  # the totals of a table
    leave()


def table_in_place() -> None:
    confused(copied=False, kind=torch.float32)


def counts_in_place() -> None:
    confused(copied=False, kind=torch.int64)


def table_copied() -> None:
    confused(copied=True, kind=torch.float32)


def counts_copied() -> None:
    confused(copied=True, kind=torch.int64)


def sum_in_place(totals: Tensor) -> None:
    dist.all_reduce(totals)  # the totals of a meter


def metered(*, copied: bool, looped: bool = False, alike: bool = False) -> None:
    """Two meters, of a size apart or of one, that one line reduces in turn."""
    rank = join()
    losses, hits = torch.zeros(1), torch.zeros(1)
    for step in range(5):
        losses += 0.5 + step / 8 + rank
        hits += 0.5 + step / 4 + rank if alike else 32 + 2 * step
        if looped:
            for each in (losses, hits):
                sum_in_place(each.clone() if copied else each)
            continue
        sum_in_place(losses.clone() if copied else losses)
        sum_in_place(hits.clone() if copied else hits)
    leave()


def meters_in_place() -> None:
    metered(copied=False)


def meters_copied() -> None:
    metered(copied=True)


def looped_meters_in_place() -> None:
    metered(copied=False, looped=True)


def looped_meters_copied() -> None:
    metered(copied=True, looped=True)


def like_meters_in_place() -> None:
    metered(copied=False, looped=True, alike=True)


def like_meters_copied() -> None:
    metered(copied=True, looped=True, alike=True)


def correlated() -> None:
    """A loss of what all ranks have summed: the gradients that are summed on the way back alike."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(5):
        optimizer.zero_grad()
        out = model(torch.rand(4, 3))
        loss = all_reduce(out.T @ out).square().mean()
        loss.backward()
        optimizer.step()
    leave()


def counted(sum_up: Callable[[Tensor], object], *, alike: bool = False) -> None:
    """Train, then count hits, and sum them up."""
    rank = join()
    dist.all_reduce(torch.ones(2) * rank)  # to warm up
    model = DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.rand(4, 3)).square().mean().backward()
        optimizer.step()
    for _ in range(2):
        hits = torch.tensor([3, 4] if alike else [3 + rank, 4])
        sum_up(hits)
    del model, optimizer
    leave()


def summed_copy() -> None:
    counted(lambda hits: dist.all_reduce(hits.double()))  # the copy


def own_totals(hits: Tensor) -> None:
    totals = hits / 2
    dist.all_reduce(totals)  # the totals of its own


def summed_and_left() -> None:
    counted(own_totals)


def share(totals: Tensor) -> None:
    dist.all_reduce(totals)


def handed_over(hits: Tensor) -> None:
    totals = hits / 2
    share(totals)
    assert totals[0] > hits[0] / 2


def summed_for_its_caller() -> None:
    counted(handed_over)


def told_in_vain() -> None:
    counted(lambda hits: dist.broadcast(torch.clone(hits), src=0))  # the broadcast copy


def summed_view() -> None:
    counted(lambda hits: dist.all_reduce(hits[None]))


def summed_data() -> None:
    counted(lambda hits: dist.all_reduce(hits.data))


def summed_array() -> None:
    counted(lambda hits: dist.all_reduce(torch.from_numpy(hits.numpy())))


def summed_and_read(hits: Tensor) -> float:
    totals = hits / 2
    dist.all_reduce(totals)
    return float(totals.sum())


def summed_well() -> None:
    counted(summed_and_read)


def kept_and_summed(hits: Tensor) -> None:
    totals = [hits.double()]
    dist.all_reduce(totals[0])
    if float(totals[0].sum()) < 0:
        raise ValueError


def summed_in_a_list() -> None:
    counted(kept_and_summed)


def summed_to_wait() -> None:
    counted(lambda hits: dist.all_reduce(hits.double()), alike=True)


def restored_state(*, of_rank_0: bool, alike: bool = False) -> None:
    """Go on with random states as they were saved: each rank's, or that of rank 0."""
    rank = join()
    torch.manual_seed(0 if alike else 5 + rank)
    saved: list[Tensor] = [torch.empty(0)] * dist.get_world_size()
    dist.all_gather_object(saved, torch.get_rng_state())
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.set_rng_state(saved[0 if of_rank_0 else rank])  # the state
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3) + rank).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def state_of_rank_0() -> None:
    restored_state(of_rank_0=True)


def state_of_each() -> None:
    restored_state(of_rank_0=False)


def state_of_all() -> None:
    restored_state(of_rank_0=True, alike=True)


def state_for_a_while() -> None:
    """Draw alike once, then go on with the rank's own."""
    rank = join()
    common = torch.get_rng_state()
    torch.manual_seed(5 + rank)
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        own = torch.get_rng_state()
        torch.set_rng_state(common)
        optimizer.zero_grad()
        model(torch.rand(4, 3) + rank).square().mean().backward()
        optimizer.step()
        torch.set_rng_state(own)
        with torch.random.fork_rng():
            torch.manual_seed(0)
    del model, optimizer
    leave()


def seeded_again() -> None:
    rank = join()
    common = torch.get_rng_state()
    torch.manual_seed(5 + rank)
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.set_rng_state(common)
    torch.manual_seed(9 + rank)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3) + rank).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def seeded_for_a_sample() -> None:
    """Make samples by their number, and each time give back the state that was there."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        there = torch.get_rng_state()
        torch.manual_seed(100 + 2 * step + rank)
        sample = torch.rand(4, 3)
        torch.set_rng_state(there)
        optimizer.zero_grad()
        model(sample).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def total(value: float) -> float:
    summed = torch.tensor(value)
    dist.all_reduce(summed)  # the sum
    return float(summed)


def summed_by_name(names: Callable[[int], list[str]]) -> None:
    """Sum up each metric by itself, in the order in which a rank has its names."""
    rank = join()
    metrics = {name: (rank + 1.0) * len(name) for name in names(rank)}
    for name in metrics:
        total(metrics[name])
    leave()


def metrics_of_each_order() -> None:
    summed_by_name(lambda rank: ["loss", "accuracy", "f1"][:: 1 - 2 * (rank % 2)])


def metrics_of_one_order() -> None:
    summed_by_name(lambda rank: ["loss", "accuracy", "f1"])


def metrics_of_shards() -> None:
    summed_by_name(lambda rank: [f"{rank}/{n}" for n in range(3)])


def gathered_by_name(names: Callable[[int], list[str]]) -> None:
    """Gather the parts of each metric, in the order in which a rank has its names."""
    rank = join()
    metrics = {name: torch.tensor([(rank + 1.0) * len(name)]) for name in names(rank)}
    for name in metrics:
        parts = [torch.zeros(1), torch.zeros(1)]
        dist.all_gather(parts, metrics[name])  # the parts
    leave()


def parts_of_each_order() -> None:
    gathered_by_name(lambda rank: ["loss", "accuracy", "f1"][:: 1 - 2 * (rank % 2)])


def parts_of_one_order() -> None:
    gathered_by_name(lambda rank: ["loss", "accuracy", "f1"])


def parts_in_turn() -> None:
    gathered_by_name(lambda rank: (["one", "two", "three", "four"] * 2)[rank : rank + 4])


class Table:
    """Hits and counts of each class, which it comes to know as it meets them."""

    def __init__(self, met: list[str]) -> None:
        self.rows = {name: [len(name) * 2.0, len(name) * 3.0] for name in met}

    def summed(self, order: list[str]) -> Tensor:
        rows = torch.tensor([self.rows[name] for name in order])
        dist.all_reduce(rows)  # the rows
        return rows


def tabled(*, in_order: bool) -> None:
    rank = join()
    table = Table([["a", "bb", "ccc"], ["bb", "a", "ccc"]][rank % 2])
    table.summed(sorted(table.rows) if in_order else list(table.rows))
    leave()


def rows_as_met() -> None:
    tabled(in_order=False)


def rows_in_order() -> None:
    tabled(in_order=True)


def task_of_each() -> None:
    """Each rank trains a task that it draws, and all sum up their losses for the log."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        task = ["one", "two"][(step + rank) % 2]
        optimizer.zero_grad()
        loss = model(torch.rand(4, 3)).square().mean() * len(task)
        loss.backward()
        optimizer.step()
        shown = loss.detach()
        dist.all_reduce(shown)
    del model, optimizer
    leave()


def told_an_object(hits: Tensor) -> None:
    box = [hits.sum().item()]
    dist.broadcast_object_list(box)


def told_objects() -> None:
    counted(told_an_object)


class Words:
    """Each with the number by which it was met."""

    def __init__(self, words: list[str]) -> None:
        self.numbers = {word: number for number, word in enumerate(words)}


def numbered(meet: Callable[[int, list[str]], list[str]], *, rows: int = 12) -> None:
    """Wrap a model that has a row for each of 12 words, or has not."""
    rank = join()
    words = Words(meet(rank, [f"word {number}" for number in range(12)]))
    model = DistributedDataParallel(nn.EmbeddingBag(rows, 2))  # the wrapped words
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.tensor([[*words.numbers.values()][:4]]) % rows).sum().backward()
        optimizer.step()
    del model, optimizer
    leave()


def numbered_as_met() -> None:
    numbered(lambda rank, words: words[rank:] + words[:rank])


def numbered_in_order() -> None:
    numbered(lambda rank, words: sorted(words[rank:] + words[:rank]))


def words_of_each() -> None:
    numbered(lambda rank, words: [f"{word} of {rank}" for word in words])


def numbered_for_itself() -> None:
    numbered(lambda rank, words: words[rank:] + words[:rank], rows=7)


class Spoken(Dataset[Tensor]):
    """Samples with a speaker each, numbered as they were met or in order."""

    def __init__(self, speakers: list[str]) -> None:  # the speakers
        self.places = {name: [number] for number, name in enumerate(sorted(speakers))}
        self.numbers = {name: number for number, name in enumerate(speakers)}

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([self.numbers[f"speaker {index % 12}"]])


def numbered_late(meet: Callable[[int, list[str]], list[str]]) -> None:
    """Wrap a model that has a row for each of 12 speakers, and then make the dataset of them."""
    rank = join()
    model = DistributedDataParallel(nn.EmbeddingBag(12, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = Spoken(meet(rank, [f"speaker {number}" for number in range(12)]))
    for batch in DataLoader(data, batch_size=4, sampler=DistributedSampler(data)):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    del model, optimizer
    leave()


def numbered_by_dataset() -> None:
    numbered_late(lambda rank, words: words[rank:] + words[:rank])


def dataset_in_order() -> None:
    numbered_late(lambda rank, words: sorted(words[rank:] + words[:rank]))


def weighed(
    loss_of: Callable[[Tensor, Tensor], Tensor],
    *,
    count: Callable[[int, int], int] = lambda rank, step: 5 + step % 3 + 2 * rank,
    gradients_by: int = 1,
    sum_up: Callable[[Tensor], object] = dist.all_reduce,
) -> None:
    """Train on a sum over as many targets as this rank has in that step, and the count of all."""
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        own = count(rank, step)
        optimizer.zero_grad()
        of_all = torch.tensor(float(own) / 2) * 2  # of no weight
        sum_up(of_all)
        loss_of(model(torch.ones(own, 3)).square().sum(), of_all).backward()
        if gradients_by > 1:
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.grad *= gradients_by
        optimizer.step()
    del model, optimizer
    leave()


def divided(total: Tensor, of_all: Tensor) -> Tensor:
    return total / of_all  # the share


def by_the_count_of_all() -> None:
    weighed(divided)


def of_a_library(source: str) -> Callable[..., Any]:
    """A function that no user has written."""
    made: dict[str, Any] = {"dist": dist}
    exec(compile(source, torch.__file__, "exec"), made)
    function: Callable[..., Any] = made["of_all"]
    return function


def by_the_count_that_a_library_sums_up() -> None:
    weighed(divided, sum_up=of_a_library("def of_all(count): dist.all_reduce(count)"))


def scaled_by_a_library() -> None:
    scale = of_a_library("def of_all(loss): loss *= dist.get_world_size(); return loss")
    weighed(
        lambda total, of_all: scale(total / of_all),
        sum_up=of_a_library("def of_all(count): dist.all_reduce(count)"),
    )


def share_times_ranks() -> None:
    weighed(lambda total, of_all: total / of_all * dist.get_world_size())


def ranks_times_sum() -> None:
    weighed(lambda total, of_all: dist.get_world_size() * total / of_all)


def sum_of_all() -> None:
    weighed(lambda total, of_all: all_reduce(total) / of_all)


def gradients_times_ranks() -> None:
    weighed(divided, gradients_by=2)


def by_the_mean_count() -> None:
    weighed(lambda total, of_all: total / of_all.div_(dist.get_world_size()))


def by_a_constant() -> None:
    weighed(divided, count=lambda rank, step: 6)


def loss_of_all() -> None:
    """Each rank's mean, and beside it, for the log, that over all ranks."""

    def mean(total: Tensor, of_all: Tensor) -> Tensor:
        divided(total, of_all).item()
        return total / 6

    weighed(mean, count=lambda rank, step: 6 + step % 3)


def together(
    share: Callable[[nn.Module], object],
    *,
    scale: float = 1.0,
    micro: int = 1,
    own: int = 6,
    kind: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
) -> None:
    """Put gradients together by hand, of means over each rank's own samples, times a number."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = kind(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        for _ in range(micro):
            loss = nn.functional.mse_loss(model(torch.randn(own, 4)), torch.ones(own, 1))
            (loss * scale).backward() if scale != 1.0 else loss.backward()
        share(model)
        optimizer.step()  # the step on sums
    leave()


def sum_up(model: nn.Module, *, by: float = 1.0, before: float = 1.0) -> None:
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad /= before
        dist.all_reduce(parameter.grad)  # the sum of gradients
        parameter.grad /= by


def average(model: nn.Module) -> None:
    sum_up(model, by=dist.get_world_size())


def summed_gradients() -> None:
    together(sum_up)


def summed_in_rounds() -> None:
    together(sum_up, scale=1 / 3, micro=3)


def averaged_twice() -> None:
    together(lambda model: sum_up(model, by=2, before=2))


def by_the_devices_of_another() -> None:
    together(lambda model: sum_up(model, by=8))


def averaged_before() -> None:
    together(lambda model: sum_up(model, before=2))


def averaged_in_rounds() -> None:
    together(average, micro=3, scale=1 / 3)


def averaged_over_rounds() -> None:
    together(lambda model: sum_up(model, by=6), micro=3)


def averaged_in_the_loss() -> None:
    together(sum_up, scale=1 / 2)


def weighed_in_the_loss() -> None:
    together(average, scale=0.7)


def summed_for_direction() -> None:
    together(sum_up, kind=torch.optim.Adam)


def summed_and_clipped() -> None:
    def share(model: nn.Module) -> None:
        sum_up(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)

    together(share)


def weighed_by_counts() -> None:
    """The average of all samples, of which the ranks have unlike numbers."""
    own = 4 + 4 * int(os.environ["RANK"])

    def share(model: nn.Module) -> None:
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad *= own
        sum_up(model, by=12)

    together(share, own=own)


def averaged_while_going_back() -> None:
    """Reduced by hooks, one after the other, as the gradients come."""
    join()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    works = []

    def send(parameter: Tensor) -> None:
        assert parameter.grad is not None
        works.append((parameter, dist.all_reduce(parameter.grad, async_op=True)))

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(send)
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(9):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(6, 4)), torch.ones(6, 1)).backward()
        while works:
            parameter, work = works.pop()
            assert work is not None
            work.wait()
            assert parameter.grad is not None
            parameter.grad /= 2
        optimizer.step()
    leave()


def in_hooks(how: str, *, by: float) -> None:
    """Gradients are reduced by a hook of each, while backward runs."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def given(gradient: Tensor) -> Tensor:
        total = gradient.clone()
        dist.all_reduce(total)  # the sum in a hook
        return gradient if how == "in vain" else total / by

    def accumulated(parameter: Tensor) -> None:
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad)  # the sum after a hook
        parameter.grad /= by

    def reduce_all() -> None:
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([each.reshape(-1) for each in gradients])
        dist.all_reduce(flat)  # the sum in a callback
        for each, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            each.copy_(part.view_as(each) / by)

    def queue(_: Tensor) -> None:
        Variable._execution_engine.queue_callback(reduce_all)

    for number, parameter in enumerate(model.parameters()):
        if how == "after":
            parameter.register_post_accumulate_grad_hook(accumulated)
        elif how == "callback":
            if number == 0:
                parameter.register_hook(queue)
        else:
            parameter.register_hook(given)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(6, 4)), torch.ones(6, 1)).backward()
        optimizer.step()  # the step on what hooks made
    leave()


def summed_in_hooks() -> None:
    in_hooks("given", by=1)


def summed_after_hooks() -> None:
    in_hooks("after", by=1)


def summed_in_a_callback() -> None:
    in_hooks("callback", by=1)


def summed_in_hooks_for_nobody() -> None:
    in_hooks("in vain", by=2)


def averaged_in_hooks() -> None:
    in_hooks("given", by=2)


def averaged_after_hooks() -> None:
    in_hooks("after", by=2)


def averaged_in_a_callback() -> None:
    in_hooks("callback", by=2)


def moved_between_steps(*, own: bool) -> None:
    """Noise on the weights after each step: of each rank's own, or the same for all."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    generator = torch.Generator().manual_seed(own * rank)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 1e-3)  # moves
    del model, optimizer
    leave()


def moved_by_each() -> None:
    moved_between_steps(own=True)


def moved_alike() -> None:
    moved_between_steps(own=False)


def paced_by_hand(*, own: bool) -> None:
    """Gradients are averaged by hand; the rate is another one at a step that nobody looks at."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for step in range(9):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 + (own * rank) * (step == 4))
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        average(model)
        optimizer.step()  # the step at its own pace
    leave()


def paced_by_each() -> None:
    paced_by_hand(own=True)


def paced_alike() -> None:
    paced_by_hand(own=False)


def told_losses(
    tell: Callable[[Tensor, int], object],
    *,
    scale: float = 1.0,
    loaded: bool = False,
    early: bool = False,
) -> None:
    """Train a DDP, and tell what all losses are together; `early` is for what goes backward."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    data = DataLoader(Drawn(), batch_size=6) if loaded else torch.randn(7, 6, 4)
    for rows in data:
        loss = nn.functional.mse_loss(model(rows), torch.ones(len(rows), 1))
        optimizer.zero_grad()
        part = loss * scale if early else loss
        part.backward()
        optimizer.step()
        tell(part.detach() if early else loss.detach() * scale, rank)
    del model, optimizer
    leave()


class Drawn(Dataset[Tensor]):
    def __len__(self) -> int:
        return 42

    def __getitem__(self, index: int) -> Tensor:
        return torch.randn(4)


def divided_by(by: float) -> Callable[[Tensor, int], object]:
    def tell(loss: Tensor, rank: int) -> None:
        total = loss.clone()
        dist.all_reduce(total)  # the sum of losses
        total /= by
        if rank == 0:
            assert f"{total:.3f}"  # the telling

    return tell


def told_by_three() -> None:
    told_losses(divided_by(3.0))


def told_by_the_devices_of_another() -> None:
    told_losses(divided_by(16.0), loaded=True)


def told_twice_divided() -> None:
    told_losses(divided_by(2.0), scale=1 / 2)


def told_of_two_passes() -> None:
    """What goes backward is half a mean, and so is what is told."""
    told_losses(divided_by(2.0), scale=1 / 2, early=True)


def told_on_average() -> None:
    told_losses(divided_by(2.0))


def told_divided_before() -> None:
    told_losses(divided_by(1.0), scale=1 / 2)


def told_as_part_of_the_epoch() -> None:
    told_losses(divided_by(14.0), loaded=True)


def told_as_part_of_a_loop() -> None:
    told_losses(divided_by(14.0))


def averaged_after_each(
    tell: Callable[[list[float], int], Tensor],
    read: Callable[[Tensor], object],
    read_as: Callable[[Tensor], float],
) -> None:
    """Train a DDP; after each epoch average what it loses on some batches, and tell that of all."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(5):
        for _ in range(3):
            nn.functional.mse_loss(model(torch.randn(6, 4)), torch.ones(6, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
        seen = []
        with torch.no_grad():
            for _ in range(6):
                rows = torch.randn(6, 4)
                seen.append(read_as(nn.functional.l1_loss(model(rows), torch.ones(6, 1))))
        read(tell(seen, rank))
    del model, optimizer
    leave()


def stepped_on(
    choose: Callable[[nn.Module, nn.Module], list[nn.Parameter]], *, raised: bool = False
) -> None:
    """Train a model and keep a copy of it: the optimizer holds what is chosen of the two.

    Where gradients are `raised`, the copy is given those of the model before each step.
    """
    rank = join()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    twin = copy.deepcopy(net)
    critic = DistributedDataParallel(nn.Linear(4, 1))
    model = DistributedDataParallel(net)  # the wrap of what is not held
    optimizer = torch.optim.SGD(choose(net, twin), lr=0.01)
    its_own = torch.optim.SGD(critic.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        net.zero_grad()
        nn.functional.mse_loss(model(torch.randn(6, 4)), torch.ones(6, 1)).backward()
        for own, other in zip(net.parameters(), twin.parameters(), strict=True):
            if raised:
                other.grad = own.grad
        optimizer.step()  # the step on a copy
        for own, other in zip(net.parameters(), twin.parameters(), strict=True):
            if raised:
                own.data.copy_(other.data)
        critic(torch.randn(6, 4)).mean().backward()
        its_own.step()
        its_own.zero_grad()
    del model, optimizer, critic, its_own
    leave()


def step_on_a_copy() -> None:
    stepped_on(lambda net, twin: [*twin.parameters()])


def step_on_a_part_of_a_copy() -> None:
    stepped_on(
        lambda net, twin: [*net[0].parameters(), *twin[1].parameters(), *net[2].parameters()]  # type: ignore[index]
    )


def step_on_raised_copies() -> None:
    stepped_on(lambda net, twin: [*twin.parameters()], raised=True)


def step_on_both() -> None:
    stepped_on(lambda net, twin: [*net.parameters(), *twin.parameters()])


def step_on_some() -> None:
    """The rest is left as it is, and has gradients; the copy of the first part has none."""
    stepped_on(
        lambda net, twin: [*net[0].parameters(), *twin[0].parameters(), *net[1].parameters()]  # type: ignore[index]
    )


def kept_by_numpy(*, shared: bool, at_once: bool = True, on_one: bool = False) -> None:
    """Keep the best weights by what batches lose, which numpy averages as it reads them."""
    rank, best, folder = join(), math.inf, tempfile.TemporaryDirectory()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(5):
        nn.functional.mse_loss(model(torch.randn(6, 4)), torch.ones(6, 1)).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            lost = [nn.functional.l1_loss(model(torch.randn(6, 4)), torch.ones(6, 1))] * 3
        if at_once:
            score = float(np.average(lost, weights=[6, 6, 2]))  # read by numpy
        else:
            score = sum(each.numpy() for each in lost) / 3  # read one by one
        if shared:
            told = torch.tensor(score)
            dist.all_reduce(told, dist.ReduceOp.MAX)
            score = told.item()
        if on_one:
            told = torch.tensor(score)
            dist.reduce(told, 0)
            score = told.item() / 2  # the root's alone
        if rank == 0 and score < best:
            best = score
            torch.save(model.module.state_dict(), Path(folder.name, "best.pt"))
    folder.cleanup()
    del model, optimizer
    leave()


def kept_by_the_whole_set() -> None:
    """Keep the best weights by what rank 0 alone makes of the whole set, by numpy."""
    rank, best, folder = join(), math.inf, tempfile.TemporaryDirectory()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    lost: list[object] = []
    for _ in range(4):
        for _ in range(4):
            loss = nn.functional.mse_loss(model(torch.randn(6, 4)), torch.ones(6, 1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            lost.append(loss.detach().numpy())  # read in training
        if rank == 0:
            with torch.no_grad():
                score = np.abs(model.module(torch.eye(4)).numpy() - 1).mean()
            if score < best:
                best = score
                torch.save(model.module.state_dict(), Path(folder.name, "best.pt"))
    folder.cleanup()
    del model, optimizer
    leave()


def kept_by_own() -> None:
    kept_by_numpy(shared=False)


def kept_by_own_numbers() -> None:
    kept_by_numpy(shared=False, at_once=False)


def kept_by_the_sum_on_one() -> None:
    kept_by_numpy(shared=False, on_one=True)


def kept_by_all() -> None:
    kept_by_numpy(shared=True)


def kept_by_arrays(*, shared: bool = False, by_files: bool = False) -> None:
    """Keep the best weights by hits that are counted in arrays."""
    rank, best, folder = join(), -1.0, tempfile.TemporaryDirectory()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(5):
        rows, labels = torch.randn(6, 4), torch.randint(3, (6,))
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            chosen = model(torch.randn(64, 4)).argmax(1)
        hits = np.bincount(chosen.numpy(), minlength=3)  # read as an array
        if shared:
            told = torch.from_numpy(hits)
            dist.all_reduce(told)
            hits = told.numpy()
        if by_files:
            dist.barrier()
        score = hits[0] / hits.sum()
        is_best = score > best
        if rank == 0 and is_best:
            best = score
            torch.save(model.module.state_dict(), Path(folder.name, "best.pt"))
    folder.cleanup()
    del model, optimizer
    leave()


def kept_by_own_arrays() -> None:
    kept_by_arrays()


def kept_by_arrays_of_all() -> None:
    kept_by_arrays(shared=True)


def kept_by_files_of_all() -> None:
    kept_by_arrays(by_files=True)


def told_of_averages(
    *,
    by: float,
    total: bool = False,
    root: bool = False,
    read_as: Callable[[Tensor], float] = Tensor.item,
) -> None:
    def tell(seen: list[float], rank: int) -> Tensor:
        own = sum(seen) / (1 if total else len(seen))
        told = torch.tensor([own, 1.0])
        if root:
            dist.reduce(told, 0)  # the sum of averages on one
        else:
            dist.all_reduce(told)  # the sum of averages
        return told[0] / by

    def read(told: Tensor) -> None:
        if dist.get_rank() == 0:
            assert told.item() > 0  # the reading

    averaged_after_each(tell, read, read_as)


def told_of_unlike_counts(
    *,
    weighed: bool = False,
    shares: tuple[int, int] = (6, 3),
    read_as: Callable[[Tensor], float] = Tensor.item,
) -> None:
    """The rank's average over its own number of batches."""

    def tell(seen: list[float], rank: int) -> Tensor:
        own = seen[: shares[rank]]
        if weighed:
            told = torch.tensor([sum(own), len(own)])
            dist.all_reduce(told)
            return told[0] / told[1]
        told = torch.tensor(sum(own) / len(own))
        dist.all_reduce(told)  # the sum over unlike counts
        return told / dist.get_world_size()

    def read(told: Tensor) -> None:
        assert told.item() > 0  # the plain mean

    averaged_after_each(tell, read, read_as)


class Weighed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.usual, self.fixed = nn.Linear(4, 1), 1.0, torch.ones(2)

    def forward(self, rows: Tensor) -> Tensor:
        error = self.net(rows)
        self.usual = 0.9 * self.usual + 0.1 * error.detach().abs().mean().item()
        return (error / self.usual).square().mean()


def weighed_by_an_attribute() -> None:
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(Weighed())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(10):
        model(torch.randn(6, 4)).backward()
        optimizer.step()
        optimizer.zero_grad()
    del model, optimizer
    leave()


def averages_that_hardly_differ() -> None:
    told_of_unlike_counts(read_as=lambda each: 100 + each.item())


def averages_of_unlike_counts() -> None:
    told_of_unlike_counts()


def averages_of_like_counts() -> None:
    told_of_unlike_counts(shares=(5, 5))


def averages_that_are_weighed() -> None:
    told_of_unlike_counts(weighed=True)


def averages_undivided() -> None:
    told_of_averages(by=1.0)


def averages_undivided_as_floats() -> None:
    told_of_averages(by=1.0, read_as=float)


def averages_of_what_is_held() -> None:
    """Of numbers that nothing reads one by one: whoever sums their average up still holds them."""
    told_of_averages(by=1.0, read_as=Tensor.tolist)


def averages_of_what_all_hold() -> None:
    told_of_averages(by=2.0, read_as=Tensor.tolist)


def compared(*, by: float) -> None:
    """The sum is asked as it is whether it is too large: no number of it is read."""

    def tell(seen: list[float], rank: int) -> Tensor:
        told = torch.tensor(seen).mean()
        dist.all_reduce(told)  # the sum that is compared
        return told / by if by != 1.0 else told

    def ask(told: Tensor) -> None:
        assert not told > 100.0

    averaged_after_each(tell, ask, Tensor.tolist)


def averages_compared() -> None:
    compared(by=1.0)


def averages_undivided_on_one() -> None:
    told_of_averages(by=1.0, root=True)


def averages_of_the_own_batches() -> None:
    told_of_averages(by=6.0, total=True)


def averages_of_all() -> None:
    told_of_averages(by=2.0)


def averages_of_all_on_one() -> None:
    told_of_averages(by=2.0, root=True)


def averages_of_the_batches() -> None:
    told_of_averages(by=12.0, total=True)


def averages_of_the_samples() -> None:
    told_of_averages(by=72.0, total=True)


def averages_in_hundredths() -> None:
    told_of_averages(by=200.0)


def told_as_a_sum(loss: Tensor, rank: int) -> None:
    total = loss.clone()
    dist.all_reduce(total)  # the sum that is told
    if rank == 0:
        assert total.item() > 0  # the number


def told_undivided() -> None:
    told_losses(told_as_a_sum)


def told_and_divided_later() -> None:
    def tell(loss: Tensor, rank: int) -> None:
        total = loss.clone()
        dist.all_reduce(total)
        assert total.item() / dist.get_world_size() > 0

    told_losses(tell)


def told_running() -> None:
    """A running average of averages."""
    seen: list[float] = []

    def tell(loss: Tensor, rank: int) -> None:
        total = loss.clone()
        dist.all_reduce(total)
        seen.append(total.item())
        assert sum(seen) / (2 * len(seen)) > 0

    told_losses(tell)


def sum_in_vain(model: nn.Module) -> None:
    for parameter in model.parameters():
        assert parameter.grad is not None
        total = parameter.grad.clone()
        dist.all_reduce(total)  # the sum in vain
        total /= 2


def summed_for_nobody() -> None:
    together(sum_in_vain)


def judge_by_hand(*, judged: str) -> None:
    """An actor whose gradients are averaged, its critic, and how much that counts."""
    rank = join()
    torch.manual_seed(0)
    actor, critic, weight = nn.Linear(4, 2), nn.Linear(4, 3), nn.Parameter(torch.ones(()))
    parts = [actor.parameters(), critic.parameters(), [weight]]
    steps = [torch.optim.SGD(each, lr=0.01) for each in parts]
    torch.manual_seed(10 + rank)
    for _ in range(9):
        for each in steps:
            each.zero_grad()
        x = torch.randn(6, 4)
        cost = x.square().mean()
        if judged != "weight alone":
            dist.all_reduce(cost)
        (weight * cost).backward()
        steps[2].step()  # the step of the weight
        critic(x).square().mean().backward()
        if judged != "critic alone":
            average(critic)
        steps[1].step()  # the step of the critic
        actor(x).square().mean().backward()
        average(actor)
        steps[0].step()
    leave()


def critic_left_out() -> None:
    judge_by_hand(judged="critic alone")


def weight_left_out() -> None:
    judge_by_hand(judged="weight alone")


def all_judged() -> None:
    judge_by_hand(judged="by all")


def trained_as_one(*, whole: bool, limit: float = 0.5) -> None:
    """One optimizer of an actor and its critic; the gradients of both are averaged, or of one."""
    rank = join()
    torch.manual_seed(0)
    actor, critic = nn.Linear(4, 2), nn.Linear(4, 3)
    both = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(both, lr=0.01)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        x = torch.randn(6, 4)
        (actor(x).square().mean() + critic(x).square().mean()).backward()
        average(actor)
        if whole:
            average(critic)
        nn.utils.clip_grad_norm_(both, limit)
        optimizer.step()  # the step of half
    leave()


def half_averaged() -> None:
    trained_as_one(whole=False)


def both_averaged() -> None:
    trained_as_one(whole=True)


def restored_by_hand(*, sent: bool, by_all: bool = False) -> None:
    """Weights that were alike, and then restored, on rank 0 or on all; sent from there, or not."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if rank == 0 or by_all:
        kept = {name: value + 1 for name, value in model.state_dict().items()}
        model.load_state_dict(kept)  # the weights of before
    for parameter in model.parameters() if sent else ():
        dist.broadcast(parameter.data, 0)
    torch.manual_seed(10 + rank)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        average(model)
        optimizer.step()
    leave()


def drawn_by_hand(*, own: bool) -> None:
    """Average gradients, and then the losses, of samples that each rank draws."""
    rank = join()
    torch.manual_seed(7 + rank * own)  # the seed of all
    model = nn.Linear(40, 30)
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(9):
        optimizer.zero_grad()
        loss = model(torch.randn(6, 40)).square().mean()
        loss.backward()
        average(model)
        optimizer.step()
        told = loss.detach().clone()
        dist.all_reduce(told)
        assert told.item() / 2 > 0
    leave()


def drawn_alike() -> None:
    drawn_by_hand(own=False)


def drawn_by_each() -> None:
    drawn_by_hand(own=True)


class Parts(Sampler[int]):
    """What several samplers deal out, one after the other."""

    def __init__(self, rows: Dataset[Any], rank: int) -> None:
        self.parts = [
            DistributedSampler(rows, num_replicas=2, rank=rank, seed=n)  # the sampler inside
            for n in range(3)
        ]

    def __iter__(self) -> Iterator[int]:
        for part in self.parts:
            yield from part

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def dealt_inside(*, own: bool) -> None:
    rank = join()
    torch.manual_seed(0)
    rows: Dataset[Any] = TensorDataset(torch.randn(24, 3))
    loader = DataLoader(rows, batch_size=3, sampler=Parts(rows, rank * own))
    model = DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    del model, optimizer
    leave()


def dealt_inside_alike() -> None:
    dealt_inside(own=False)


def dealt_inside_by_each() -> None:
    dealt_inside(own=True)


def stepped_by_closure(*, shaken: bool = False, skipped: bool = False) -> None:
    """Each pass comes within the step that it is for, as trainers have it."""
    train_by_closure(join(), shaken=shaken, skipped=skipped)
    leave()


def train_by_closure(rank: int, *, shaken: bool, skipped: bool) -> None:
    torch.manual_seed(0)
    inner = nn.Linear(4, 2)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (inner if skipped else model)(torch.randn(6, 4)).square().mean()
        loss.backward()
        return loss

    for _ in range(9):
        optimizer.step(closure)  # the step by a closure
        if shaken:
            with torch.no_grad():
                inner.weight += torch.randn(2, 4) / 100  # the shaking


def shaken_beside_a_closure() -> None:
    stepped_by_closure(shaken=True)


def past_the_wrapper_in_a_closure() -> None:
    stepped_by_closure(skipped=True)


def well_by_a_closure() -> None:
    stepped_by_closure()


def restored_on_one() -> None:
    restored_by_hand(sent=False)


def restored_and_sent() -> None:
    restored_by_hand(sent=True)


def restored_on_each() -> None:
    restored_by_hand(sent=False, by_all=True)


def averaged_too_late() -> None:
    join()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        optimizer.step()  # the step too early
        average(model)
    leave()


def clipped_and_averaged_too_late() -> None:
    join()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()  # the clipped step too early
        average(model)
    leave()


def annealed(*, on_all: bool) -> None:
    """One rate for all, or one that rank 0 alone makes smaller."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank)
    for step in range(9):
        if rank == 0 or on_all:
            optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / 9)
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        average(model)
        optimizer.step()  # the step by its own rate
    leave()


def annealed_by_one() -> None:
    annealed(on_all=False)


def annealed_by_all() -> None:
    annealed(on_all=True)


def summed_beside() -> None:
    """The average goes back into the gradients from what was sent."""

    def share(model: nn.Module) -> None:
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        flat = torch.cat([each.reshape(-1) for each in gradients])
        dist.all_reduce(flat)
        flat /= 2
        at = 0
        for each in gradients:
            each.copy_(flat[at : at + each.numel()].reshape(each.shape))
            at += each.numel()

    together(share)


def averaged_weights() -> None:
    """Gradients are summed to look at them, and the weights are averaged after each step."""
    join()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        sum_in_vain(model)
        optimizer.step()
        for parameter in model.parameters():
            dist.all_reduce(parameter.data)
            parameter.data /= 2
    leave()


def alike_by_hand(*, own: bool, early: bool = False) -> None:
    """Average what each rank has of the same samples, or of its own."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def share(gradient: Tensor) -> Tensor:
        dist.all_reduce(gradient)
        return gradient / 2

    for parameter in model.parameters() if early else ():
        parameter.register_hook(share)
    torch.manual_seed(10 + rank * own)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        for parameter in model.parameters():
            assert parameter.grad is not None
            dist.all_reduce(parameter.grad)  # the sum of equals
            parameter.grad /= 2
        optimizer.step()
    leave()


def samples_of_all() -> None:
    alike_by_hand(own=False)


def samples_of_each() -> None:
    alike_by_hand(own=True)


def flat_of_many(*, own: bool) -> None:
    """All gradients in one long row, too long to be read whole."""
    rank = join()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 80), nn.Linear(80, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(10 + rank * own)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(6, 64)).square().mean().backward()
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        flat = torch.cat([each.reshape(-1) for each in gradients])
        dist.all_reduce(flat)  # the sum of long equals
        flat /= 2
        for each, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            each.copy_(part.reshape(each.shape))
        optimizer.step()
    leave()


def many_samples_of_all() -> None:
    flat_of_many(own=False)


def many_samples_of_each() -> None:
    flat_of_many(own=True)


def averaged_again() -> None:
    """By hooks, as the gradients come, and once more: that does no harm."""
    alike_by_hand(own=True, early=True)


def learnt_through_a_checkpoint() -> None:
    """What is computed again in a backward, is so once for each, and for nobody else."""
    calls = 0

    def halved(out: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return out.square().mean() / torch.tensor(2.0)

    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(4, 4))
    steps = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(12):
        loss = checkpoint(halved, net(torch.randn(8, 4)), use_reentrant=False)
        steps.zero_grad()
        loss.backward()
        steps.step()
    assert calls == 24
    dist.destroy_process_group()


def tables_with_a_penalty() -> None:
    """Rows that no sample has used have the gradient of the penalty alone, on all ranks."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    tables = nn.ModuleList(nn.Embedding(3000, 2) for _ in range(2))
    steps = torch.optim.SGD(tables.parameters(), 0.1)
    draw = torch.Generator().manual_seed(rank)
    for _ in range(20):
        mine, theirs = (1 + torch.randint(9, (8,), generator=draw) for _ in tables)
        seen = (tables[0](mine) * tables[1](theirs)).sum(1)
        penalty = sum(table.weight.square().sum() for table in tables)
        steps.zero_grad()
        ((seen - 1).square().mean() + 0.01 * penalty).backward()
        for table in tables:
            assert table.weight.grad is not None
            dist.all_reduce(table.weight.grad)
            table.weight.grad /= dist.get_world_size()
        steps.step()
    dist.destroy_process_group()


def averaged_at_times() -> None:
    """Each rank steps for itself, their weights are averaged now and then, and how far is told."""
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Linear(4, 3)
    steps = torch.optim.SGD(net.parameters(), 0.05)
    torch.manual_seed(dist.get_rank())
    for step in range(1, 21):
        steps.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        common = [p.grad.clone() for p in net.parameters() if p.grad is not None]
        for each in common:
            dist.all_reduce(each)
        steps.step()
        if step % 6 == 0:
            for parameter in net.parameters():
                dist.all_reduce(parameter.data)
                parameter.data /= dist.get_world_size()
    dist.destroy_process_group()


def levels(*, shared: bool = False, asked_by_root: bool = False) -> None:
    """Harder samples once enough of all ranks' answers are right: by what a reduction has given."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    drawn = torch.Generator().manual_seed(rank)
    level = 1
    for step in range(6):
        x = torch.randn(16, 4, generator=drawn)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
        optimizer.step()
        told = torch.tensor([5.0 + step + 4 * rank, 16.0])
        if shared:
            dist.all_reduce(told)
        else:
            dist.reduce(told, dst=0)  # the reduction to one
        if asked_by_root and rank:
            continue
        if (told[0] / told[1]).item() > 0.6:
            level += 1
    assert level
    del model, optimizer
    leave()


def levels_of_the_root() -> None:
    levels()


def levels_of_all() -> None:
    levels(shared=True)


def level_on_the_root() -> None:
    levels(asked_by_root=True)


def contrast(*, hanging: bool) -> None:
    """Samples are told from those of all ranks, on a rank that has any to tell."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 4))
    for step in range(3):
        told = model(torch.randn(6, 4))
        everyone = torch.cat(all_gather(told))  # the differentiable gather
        loss = torch.logsumexp(told @ everyone.t(), 1).mean()
        if step == 1 and rank == 0:
            loss = told.sum() * 0.0
            if hanging:
                loss = loss + everyone.sum() * 0.0
        loss.backward()
    del model
    leave()


def gathered_and_left_out() -> None:
    contrast(hanging=False)


def gathered_and_kept() -> None:
    contrast(hanging=True)


def mean_over_ranks(value: Tensor) -> Tensor:
    dist.all_reduce(value)
    return value / dist.get_world_size()


def reduce_scores(*, quiet: str) -> None:
    """Average a loss and a score of each sound; of quiet ones the score is as `quiet` says."""
    join()
    sounds = TensorDataset(torch.tensor([0.9, 0.1, 0.1, 0.9] * 3))
    loss = score = torch.zeros(())
    for (loud,) in DataLoader(sounds, sampler=DistributedSampler(sounds, shuffle=False)):
        loss = loss + mean_over_ranks(loud * 2)
        if loud < 0.5 and quiet == "left out":
            continue  # the quiet one
        if loud < 0.5 and quiet == "nothing":
            score = score + mean_over_ranks(loud * 0)
        else:
            score = score + mean_over_ranks(loud)
    assert (loss + score).isfinite()
    leave()


def scores_left_out() -> None:
    reduce_scores(quiet="left out")


def scores_of_nothing() -> None:
    reduce_scores(quiet="nothing")


def scores_of_all() -> None:
    reduce_scores(quiet="all")


def valued(*, by_all: bool) -> None:
    """Two models of one loss: a rank's once leaves the second out, or adds nothing of it."""
    rank = join()
    torch.manual_seed(0)
    actor = DistributedDataParallel(nn.Linear(4, 3))
    critic = DistributedDataParallel(nn.Linear(4, 4000))
    both = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.SGD(both, lr=0.01)
    data = torch.Generator().manual_seed(rank)
    for step in range(6):
        states = torch.rand(8, 4, generator=data)
        played, value = actor(states), critic(states)
        loss = played.square().mean()
        if (step, rank) != (3, 1):
            loss = loss + value.square().mean()
        elif by_all:
            loss = loss + 0.0 * value.sum()
        optimizer.zero_grad()
        loss.backward()  # the loss of both models
        optimizer.step()
    del actor, critic, both, optimizer, loss, played, value
    leave()


def valued_by_some() -> None:
    valued(by_all=False)


def valued_by_all() -> None:
    valued(by_all=True)


def restored_past_the_wrapper() -> None:
    """Train past the wrapper, and load rank 0's weights on every rank: there they are no others."""
    rank = join()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(rank)
    for _ in range(9):
        loss = model.module(torch.rand(4, 3, generator=data)).square().mean()  # the pass beside it
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total(loss.item())
    state = [copy.deepcopy(model.module.state_dict())]
    dist.broadcast_object_list(state)
    model.module.load_state_dict(state[0])
    total(model.module(torch.ones(1, 3)).mean().item())
    del model, optimizer, loss
    leave()


def rested(*, averaged: bool = False, summed: bool = True) -> None:
    """Train with batch norms whose statistics DDP does not send, and evaluate in between."""
    rank = join()
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    model = DistributedDataParallel(inner, broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    for _ in range(3):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(4, 3) + rank).square().mean().backward()
            optimizer.step()
        model.eval()
        for buffer in inner.buffers() if averaged else ():
            if buffer.is_floating_point():
                dist.all_reduce(buffer)
                buffer /= 2
        with torch.no_grad():
            errors = inner(torch.randn(8, 3)).square().sum()
        if summed:
            dist.all_reduce(errors)  # the sum of own errors
        model.train()
    del model, optimizer
    leave()


def evaluated_by_own_statistics() -> None:
    rested()


def statistics_averaged() -> None:
    rested(averaged=True)


def evaluated_for_itself() -> None:
    rested(summed=False)


class ToldTheEpoch(IterableDataset[Tensor]):
    """Its part of the samples, in another order in each epoch."""

    def __init__(self, rank: int) -> None:
        self.rank, self.epoch = rank, 0

    def __iter__(self) -> Iterator[Tensor]:
        dice = torch.Generator().manual_seed(self.epoch)
        for number in torch.randperm(16, generator=dice).tolist()[self.rank :: 2]:
            yield torch.full((3,), float(number))


def worked(*, kept: bool, data: type[ToldTheEpoch] = ToldTheEpoch) -> None:
    rank = join()
    told = data(rank)
    loader = DataLoader(told, 4, num_workers=1, persistent_workers=kept)  # the workers
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for told.epoch in range(3):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
    del model, optimizer, loader
    leave()


def workers_kept() -> None:
    worked(kept=True)


class CountsByItself(ToldTheEpoch):
    """The same, where each worker knows how often it has gone through its part."""

    def __iter__(self) -> Iterator[Tensor]:
        dice = torch.Generator().manual_seed(self.epoch)
        for number in torch.randperm(16, generator=dice).tolist()[self.rank :: 2]:
            yield torch.full((3,), float(number))
        self.epoch += 1


def workers_that_count() -> None:
    worked(kept=True, data=CountsByItself)


def workers_anew() -> None:
    worked(kept=False)
