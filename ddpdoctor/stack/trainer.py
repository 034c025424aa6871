"""The training loop, top to bottom: accumulate, average, clip, step, evaluate, save.

What is trained is given as plain functions; how it is trained, on one process or many, is here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, Protocol, Self, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.errors import TrainingError
from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import World, unwrap, wrap
from ddpdoctor.stack.progress import Show
from ddpdoctor.stack.resume import Epoch, Progress, Trained, keep, name_of, restore
from ddpdoctor.stack.rng import seed_generators
from ddpdoctor.stack.samplers import TrainingSampler

T = TypeVar("T")


class Batch(Protocol):
    """What `collate` returns: its length is the number of samples that its loss adds up."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device) -> Self:
        """Return a copy on `device`."""


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
) -> Progress:
    """Train `model` on `samples` and return what became of it; the weights are in the checkpoints.

    Every rank passes all samples and a model of the same shape. `loss_sum` adds up a batch's
    losses; it must cope with an empty batch, as the last slice of an epoch may leave a rank
    without samples. `validate` returns a metric, lower is better, and the same on every rank.
    `settings` is what a checkpoint must agree with to be resumed.

    Raises ConfigError where the output folder holds another training, TrainingError when the loss
    is not a number any more, CheckpointError when the disk refuses; each on all ranks.
    """
    device, on_gpu = world.device, world.device.type == "cuda"
    model = model.to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    net = wrap(model, world)
    # DDP groups gradients into buckets, and regroups them once it has seen a backward pass; from
    # three ranks on, the grouping decides in which order a gradient is added up. An empty batch
    # lets it settle now, so that the steps after a resume round as they would have without one.
    torch.autograd.backward(loss_sum(net, collate([]).to(device)))
    optimizer.zero_grad(set_to_none=True)
    average = ExponentialMovingAverage(net, config.ema_decay) if config.ema_decay else None
    # float16 overflows where float32 does not, so its gradients are scaled up and back; bfloat16
    # has float32's range, and a disabled scaler passes everything through.
    scaler = torch.amp.GradScaler(device.type, enabled=config.use_amp and on_gpu)
    half = torch.float16 if on_gpu else torch.bfloat16
    trained = Trained(model, optimizer, scaler, average)
    seed_generators(config.random_seed, world.rank)
    progress = restore(trained, settings, config, world)

    sampler = TrainingSampler(
        len(samples),
        config.batch_size,
        num_replicas=world.world_size,
        rank=world.rank,
        seed=config.random_seed,
    )
    loader: DataLoader[Any] = DataLoader(
        samples,  # type: ignore[arg-type]  # a sequence is all that a loader asks for
        batch_sampler=sampler,
        collate_fn=collate,
        num_workers=config.num_workers,
        # Each pass over a loader draws a number to seed its workers. Drawn from the global
        # generator, a run that was resumed would be one draw ahead of one that was not.
        generator=torch.Generator(),
    )

    while progress.epoch < config.n_epochs:
        started = time.perf_counter()
        net.train()
        sampler.set_epoch(progress.epoch, start=progress.consumed)
        for window in windows(loader, config.accumulation_steps):
            # Counted over the whole window and all ranks, before the first backward: the last
            # window of an epoch is shorter, and shares of it differ by rank.
            count = global_count(sum(map(len, window)), world)
            progress.consumed += count
            done = (progress.epoch + progress.consumed / len(samples)) / config.n_epochs
            rate = learning_rate_at(done, config)
            for group in optimizer.param_groups:
                group["lr"] = rate

            for micro, batch in enumerate(window, start=1):
                with sync_if(net, micro == len(window)):
                    with torch.autocast(device.type, half, enabled=config.use_amp):
                        summed = loss_sum(net, batch.to(device))
                    torch.autograd.backward(scaler.scale(global_mean(summed, count, world)))
                progress.loss += summed.item()

            # Unscale first: clipping scaled gradients would clip them to next to nothing.
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(net.parameters(), config.clip_norm)
            # The gradients are equal on all ranks, so all ranks raise or none does. With the
            # scaler, infinite gradients are expected at times, and it leaves those steps out.
            if not scaler.is_enabled() and not norm.isfinite():
                raise TrainingError(_diverged(progress, config))
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            if average is not None:
                average.update(net)
            progress.step += 1
            show.step(done)

            within = progress.consumed < len(samples)
            if within and config.checkpoint_every and progress.step % config.checkpoint_every == 0:
                keep(trained, progress, settings, config, world)

        train_loss = _sum_over_ranks(progress.loss, world) / len(samples)
        if not math.isfinite(train_loss):
            raise TrainingError(_diverged(progress, config))
        metric = validate(average.module if average is not None else unwrap(net))
        seconds = time.perf_counter() - started
        record = Epoch(progress.epoch, train_loss, metric, rate, seconds)
        progress.history.append(record)
        progress.epoch, progress.consumed, progress.loss = progress.epoch + 1, 0, 0.0
        if metric < progress.best_metric or progress.best is None:
            progress.best, progress.best_metric = name_of(progress), metric
        keep(trained, progress, settings, config, world)
        show.epoch(record)
    return progress


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


def learning_rate_at(done: float, config: TrainingConfig) -> float:
    """Return the rate at `done`, the share of the training's samples seen, from 0 to 1.

    A function of the samples, not of steps: nothing of it needs saving, and it is the same on any
    number of ranks.
    """
    if done < config.warmup:
        return config.learning_rate * done / config.warmup
    falling = (done - config.warmup) / (1 - config.warmup) if config.warmup < 1 else 0.0
    return config.learning_rate * (1 + math.cos(math.pi * falling)) / 2


def _sum_over_ranks(value: float, world: World) -> float:
    if world.world_size == 1:
        return value
    total = torch.tensor(value, dtype=torch.float64, device=world.device)
    dist.all_reduce(total)
    return total.item()


def _diverged(progress: Progress, config: TrainingConfig) -> str:
    return (
        f"the loss is not a finite number any more (epoch {progress.epoch}, step {progress.step}): "
        f"try a learning_rate below {config.learning_rate:g}"
    )
