"""The training loop, top to bottom: accumulate, average, clip, step, evaluate, save.

What is trained is given as plain functions; how it is trained, on one process or many, is here.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.stack.batch import Batch
from ddpdoctor.stack.config import Plan, TrainingConfig
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.errors import StoppedError, TrainingError
from ddpdoctor.stack.loading import make_loader
from ddpdoctor.stack.loss import Totals, global_mean
from ddpdoctor.stack.process_group import World, unwrap, wrap
from ddpdoctor.stack.progress import Show
from ddpdoctor.stack.resume import (
    BetweenEpochs,
    Epoch,
    Progress,
    Trained,
    keep,
    name_of,
    restore,
)
from ddpdoctor.stack.rng import seed_generators
from ddpdoctor.stack.samplers import TrainingSampler
from ddpdoctor.stack.stopping import on_sigterm
from ddpdoctor.stack.tensorboard import curves
from ddpdoctor.stack.timing import PhaseTimer, profiling

log = logging.getLogger(__name__)
T = TypeVar("T")


def fit(
    model: nn.Module,
    samples: Sequence[Any],
    *,
    collate: Callable[[Sequence[Any]], Batch],
    loss_sum: Callable[[nn.Module, Any], torch.Tensor],
    validate: Callable[[nn.Module], float],
    config: TrainingConfig,
    settings: dict[str, Any],
    world: World,
    show: Show,
    costs: Sequence[float] | None = None,
    higher_is_better: bool = False,
    between_epochs: BetweenEpochs | None = None,
) -> Progress:
    """Train `model` on `samples` and return what became of it; the weights are in the checkpoints.

    Every rank passes all samples and a model of the same shape. `loss_sum` adds up a batch's
    losses, and `batch.weight` is what they are to be divided by; it must cope with an empty batch,
    as the last slice of an epoch may leave a rank without samples. `validate` returns a metric,
    lower is better unless said otherwise, and the same on every rank. `settings` is what a
    checkpoint must agree with to be resumed; its "system" names what is trained.

    Where samples change with the epoch (augmentation, masks), `samples` has a `set_epoch(epoch)`,
    and draws from generators seeded by epoch and index: then it does not matter which rank or
    worker loads a sample, nor whether the training was resumed. Where one takes longer than
    another, `costs` says by how much, the same on all ranks; a step is shared out by that.

    `between_epochs` is called on all ranks before each epoch and after the last one. What it does
    to weights, average and progress is in the next checkpoint. It must depend on progress alone:
    a training that was resumed between two epochs calls it there once more.

    Raises ConfigError where the output folder holds another training, TrainingError when the loss
    is not a number any more, CheckpointError when the disk refuses, and StoppedError when SIGTERM
    came to any rank and the training was saved; each on all ranks.
    """
    device, plan = world.device, config.plan(world.world_size)
    tell(plan, config, world)
    net, trained = _begin(model, plan, config, world)
    optimizer, scaler, average = trained.optimizer, trained.scaler, trained.average
    weights = list(net.parameters())
    settle_buckets(loss_sum(net, collate([]).to(device)), optimizer)
    mixed = torch.autocast(device.type, half_type(config, device), enabled=config.use_amp)
    seed_generators(config.random_seed, world.rank)
    progress = restore(trained, settings, config, world)

    sampler = TrainingSampler(
        len(samples),
        plan.batch_size,
        num_replicas=world.world_size,
        rank=world.rank,
        seed=config.random_seed,
        costs=costs,
    )
    loader = make_loader(samples, sampler, collate, config.num_workers, world)
    timer = PhaseTimer(device, named=config.profile_steps is not None)

    with (
        curves(config, world) as curve,
        on_sigterm() as request,
        profiling(config, world) as profiled_step,
    ):
        while progress.epoch < config.n_epochs:
            started = time.perf_counter()
            if between_epochs and progress.consumed == 0:
                between_epochs(progress, trained)
            net.train()
            sampler.set_epoch(progress.epoch, start=progress.consumed)
            if hasattr(samples, "set_epoch"):
                samples.set_epoch(progress.epoch)
            for window in timer.loading(windows(loader, config.accumulation_steps)):
                # Counted over the whole window and all ranks, before the first backward: the last
                # window of an epoch is shorter, and shares of it differ by rank. Whether a rank
                # was asked to end travels along, so that all know it after the same step.
                totals = Totals([sum(batch.weight for batch in window), request.received], world)
                seen = len(window) * plan.batch_size * world.world_size
                progress.consumed = min(progress.consumed + seen, len(samples))
                done = (progress.epoch + progress.consumed / len(samples)) / config.n_epochs
                set_rate(optimizer, plan.learning_rate * schedule(done, config.warmup))

                losses = []
                for micro, batch in enumerate(window, start=1):
                    with sync_if(net, micro == len(window)):
                        with timer.phase("forward"), mixed:
                            summed = loss_sum(net, batch.to(device))
                        with timer.phase("backward"):
                            count = totals.arrived()[0]
                            # At least 1: where there is nothing to learn anywhere, the loss is 0.
                            mean = global_mean(summed, count.clamp(min=1), world)
                            torch.autograd.backward(scaler.scale(mean))
                    losses.append(summed.detach())

                with timer.phase("optimizer"):
                    # Unscale first: clipping scaled gradients would clip them to next to nothing.
                    scaler.unscale_(optimizer)
                    norm = nn.utils.clip_grad_norm_(weights, config.clip_norm)
                    # The one place where a step waits for the GPU.
                    mine = torch.stack([norm, *losses])
                    weight, asked, length, *lost = torch.cat([totals.arrived(), mine]).tolist()
                    # The gradients are equal on all ranks, so all ranks raise or none does. With
                    # the scaler, infinite gradients are expected at times, and it leaves those
                    # steps out.
                    if not scaler.is_enabled() and not math.isfinite(length):
                        raise diverged(progress, plan)
                    scaler.step(optimizer)
                    scaler.update()
                    optimizer.zero_grad(set_to_none=True)
                    if average is not None:
                        average.update(net)
                progress.loss += sum(lost)
                progress.weight += weight
                progress.step += 1
                show.step(done)
                profiled_step()

                every, within = config.checkpoint_every, progress.consumed < len(samples)
                if asked or (every and progress.step % every == 0 and within):
                    keep(trained, progress, settings, config, world)
                if asked:
                    raise stopped(config.output_dir / name_of(progress))

            [lost_by_all] = Totals([progress.loss], world).arrived().tolist()
            train_loss = lost_by_all / max(progress.weight, 1)
            metric = validate(average.module if average is not None else unwrap(net))
            if not (math.isfinite(train_loss) and math.isfinite(metric)):
                raise diverged(progress, plan)
            seconds, rate = time.perf_counter() - started, optimizer.param_groups[0]["lr"]
            record = Epoch(progress.epoch, train_loss, metric, rate, seconds, timer.take())
            progress.end_epoch(record, name_of(progress), higher_is_better=higher_is_better)
            keep(trained, progress, settings, config, world)
            show.epoch(record)
            curve(record)
        if between_epochs:
            between_epochs(progress, trained)
    return progress


def _begin(
    model: nn.Module, plan: Plan, config: TrainingConfig, world: World
) -> tuple[nn.Module, Trained]:
    """Return the wrapped model, and all that training changes."""
    net = wrap(model, world)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plan.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    # After the wrapper, which gave every rank the weights of rank 0.
    average = ExponentialMovingAverage(net, config.ema_decay) if config.ema_decay else None
    # float16 overflows where float32 does not, so its gradients are scaled up and back; bfloat16
    # has float32's range, and a disabled scaler passes everything through.
    scaled = config.use_amp and half_type(config, world.device) is torch.float16
    scaler = torch.amp.GradScaler(world.device.type, enabled=scaled)
    return net, Trained(model, optimizer, scaler, average)


def settle_buckets(loss_of_nothing: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    """Have DDP group the gradients as it will for the rest of the training.

    It regroups them once it has seen a backward pass; from three ranks on, the grouping decides in
    which order a gradient is added up. With the loss of an empty batch it settles before the first
    step, so that the steps after a resume round as they would have without one.
    """
    torch.autograd.backward(loss_of_nothing)
    optimizer.zero_grad()


def windows(batches: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut `batches` into lists of `size`, the last of which may be shorter."""
    remaining = iter(batches)
    while window := list(islice(remaining, size)):
        yield window


def sync_if(net: nn.Module, last: bool) -> AbstractContextManager[None]:
    """Let DDP average gradients only after the last micro-batch of a window.

    Forward must be inside too: it is there that DDP decides whether its hooks will communicate.
    """
    if last or not isinstance(net, DistributedDataParallel):
        return nullcontext()
    quiet: AbstractContextManager[None] = net.no_sync()
    return quiet


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next step have this learning rate, for all weights."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def schedule(done: float, warmup: float) -> float:
    """Return the share of the highest rate at `done`, the share of the training's samples seen.

    A function of the samples, not of steps: nothing of it needs saving, and it is the same on any
    number of ranks.
    """
    if done < warmup:
        return done / warmup
    falling = (done - warmup) / (1 - warmup) if warmup < 1 else 0.0
    return (1 + math.cos(math.pi * falling)) / 2


def tell(plan: Plan, config: TrainingConfig, world: World) -> None:
    """Say in the log who trains, and what one optimizer step sees."""
    if world.is_main:
        group = world.backend or "no process group"
        log.info("%d rank(s) on %s, %s", world.world_size, world.device, group)
        log.info(
            "global batch %d: %d samples on each of %d rank(s), %d time(s); learning rate %g",
            plan.global_batch,
            plan.batch_size,
            world.world_size,
            config.accumulation_steps,
            plan.learning_rate,
        )


def half_type(config: TrainingConfig, device: torch.device) -> torch.dtype:
    """Return the type that mixed precision calculates in."""
    if config.amp_dtype == "auto":
        return torch.float16 if device.type == "cuda" else torch.bfloat16
    return torch.float16 if config.amp_dtype == "float16" else torch.bfloat16


def diverged(progress: Progress, plan: Plan) -> TrainingError:
    """Return the error that ends a training whose loss is no number any more."""
    return TrainingError(
        f"the loss is not a finite number any more (epoch {progress.epoch}, step {progress.step}): "
        f"try a learning_rate below {plan.learning_rate:g}"
    )


def stopped(saved: Path) -> StoppedError:
    """Return the error that ends a training by SIGTERM, once its checkpoint is saved."""
    return StoppedError(
        f"asked to end by SIGTERM, saved {saved}: the same command with resume goes on"
    )
