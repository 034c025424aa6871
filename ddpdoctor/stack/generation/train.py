"""Train a generator of digits, by accelerate.

    ACCELERATE_USE_CPU=1 accelerate launch --multi_gpu --num_processes 2 -m ddpdoctor ...
    torchrun --nproc-per-node=2 -m ddpdoctor train generation

What accelerate needs care with is said where it is needed. Left alone are CUDA_VISIBLE_DEVICES,
which the launcher has set; torch.cuda.empty_cache(), which makes a training slower and no tensor
smaller; and wait_for_everyone() around prepare(), which waits by itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator, DataLoaderConfiguration, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from pydantic import PositiveInt
from torch.utils.data import DataLoader, Dataset

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import Plan, TrainingConfig, parse
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.errors import ConfigError
from ddpdoctor.stack.generation.data import Noised, load_digits
from ddpdoctor.stack.generation.model import FlowTransformer, ModelConfig, flow_losses
from ddpdoctor.stack.generation.results import (
    GENERATED,
    GenerationResult,
    Wanted,
    baseline_loss,
    generated,
    recognised,
    validation_loss,
)
from ddpdoctor.stack.generation.state import WHOLE, Whole, name_of, register, restore, save
from ddpdoctor.stack.loading import default_workers
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.preparation import prepare_folder
from ddpdoctor.stack.process_group import Backend, World, session
from ddpdoctor.stack.progress import progress_bar
from ddpdoctor.stack.resume import Epoch, Progress, best_weights
from ddpdoctor.stack.rng import seed_generators
from ddpdoctor.stack.stopping import heed_only_the_parent, on_sigterm
from ddpdoctor.stack.tensorboard import curves
from ddpdoctor.stack.timing import PhaseTimer, profiling
from ddpdoctor.stack.trainer import (
    diverged,
    half_type,
    schedule,
    set_rate,
    settle_buckets,
    stopped,
    tell,
)

SYSTEM = "generation"
DRAWS = 2
"""So many noises for each validation image: the loss of one would be mostly chance."""


class GenerationConfig(TrainingConfig, ModelConfig):
    """All options of a training of the generator."""

    n_epochs: PositiveInt = 60
    """How often every digit is seen."""
    sampling_steps: PositiveInt = 20
    """Steps from noise to image, when the result is measured."""


def train_generation(
    *, distributed: bool | None = None, backend: Backend = "auto", **options: Any
) -> GenerationResult:
    """Train on scikit-learn's digits. `options` are the fields of GenerationConfig.

    Returns the result on every rank; rank 0 also writes it to output_dir. Raises a StackError, the
    same one on all ranks, for anything that the caller can cure.
    """
    config = parse(GenerationConfig, options)
    with (
        session(distributed=distributed, backend=backend) as world,
        accelerated(config, world) as accelerator,
    ):
        return _train(config, accelerator, world)


@contextmanager
def accelerated(config: TrainingConfig, world: World) -> Iterator[Accelerator]:
    """Give an Accelerator that uses the process group that is there, for the length of the block.

    The group has one owner, `session`, which bound this rank to its GPU and takes the group down.
    """
    mixed = "no"
    if config.use_amp:
        half = half_type(config, world.device)
        if half is torch.float16 and world.device.type == "cpu":
            raise ConfigError("accelerate has no float16 on the CPU: choose amp_dtype=bfloat16")
        mixed = "fp16" if half is torch.float16 else "bf16"
    accelerator = Accelerator(
        cpu=world.device.type == "cpu",
        mixed_precision=mixed,
        gradient_accumulation_steps=config.accumulation_steps,
        # One seed for the order on all ranks: it must be the same everywhere. The alternative,
        # to send rank 0's generator to all at each epoch, could not be resumed within one.
        dataloader_config=DataLoaderConfiguration(
            use_seedable_sampler=True, data_seed=config.random_seed, non_blocking=True
        ),
        rng_types=[],
        kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True)],
    )
    try:
        yield accelerator
    finally:
        # It remembers the group, which is about to be taken down, for the rest of the process.
        AcceleratorState._reset_state(reset_partial_state=True)


def _train(config: GenerationConfig, accelerator: Accelerator, world: World) -> GenerationResult:
    started = time.perf_counter()
    prepare_folder(config.output_dir, world)
    with together(world):
        train, validation, teacher = load_digits(config.random_seed)
    plan = config.plan(world.world_size)
    tell(plan, config, world)
    if plan.global_batch > len(train.labels):
        raise ConfigError(
            f"a global batch of {plan.global_batch} is more than the {len(train.labels)} digits"
        )
    validating = Noised(validation, config.random_seed, DRAWS)
    loaders = [
        _loader(dataset, plan, config, world, shuffle=shuffle)
        for dataset, shuffle in (
            (Noised(train, config.random_seed), True),
            (validating, False),
            (Wanted(GENERATED, config.random_seed), False),
        )
    ]
    # The same seed on every rank: a lone process and four ranks are to begin with the same weights.
    torch.manual_seed(config.random_seed)
    bare = FlowTransformer(config)
    progress = _fit(bare, loaders[0], loaders[1], plan, config, accelerator, world)

    best = config.output_dir / str(progress.best)
    bare.load_state_dict(best_weights(checkpoint.load(best / WHOLE, world)))
    images = generated(bare, accelerator.prepare(loaders[2]), config.sampling_steps, accelerator)
    wanted = torch.arange(GENERATED) % 10
    result = GenerationResult(
        n_train=len(train.labels),
        n_validation=len(validation.labels),
        world_size=world.world_size,
        best_epoch=progress.best_epoch,
        validation_loss=progress.best_metric,
        baseline_loss=baseline_loss(train.images, validating),
        recognised=recognised(images, wanted, teacher),
        recognised_real=recognised(validation.images, validation.labels, teacher),
        history=progress.history,
        options=config.model_dump(mode="json"),
        checkpoint=best,
        seconds=time.perf_counter() - started,
    )
    with together(world):
        if world.is_main:
            result.write(config.output_dir, images)
    return result


def _fit(
    bare: FlowTransformer,
    loader: Any,
    validation_loader: Any,
    plan: Plan,
    config: GenerationConfig,
    accelerator: Accelerator,
    world: World,
) -> Progress:
    model, optimizer, (loader, validation_loader), whole = _begin(
        bare, [loader, validation_loader], plan, config, accelerator, world
    )
    average = whole.average
    progress, batches, steps = whole.progress, len(loader), config.accumulation_steps
    each = plan.batch_size * world.world_size  # samples that all ranks have at a time
    timer = PhaseTimer(accelerator.device, named=config.profile_steps is not None)
    total = torch.zeros((), dtype=torch.float64, device=accelerator.device)
    with (
        progress_bar(world) as show,
        curves(config, world) as curve,
        on_sigterm() as request,
        profiling(config, world) as profiled_step,
    ):
        while progress.epoch < config.n_epochs:
            started = time.perf_counter()
            model.train()
            loader.set_epoch(progress.epoch)
            loader.dataset.draw_for(progress.epoch)
            first = progress.consumed // each
            remaining = accelerator.skip_first_batches(loader, first)
            for number, batch in enumerate(timer.loading(remaining), start=first):
                with accelerator.accumulate(model):
                    with timer.phase("forward"), accelerator.autocast():
                        flow, alignment = flow_losses(model, batch)
                        loss = (flow + config.align_weight * alignment).mean()
                    with timer.phase("backward"):
                        # accelerate divides by the number of batches of a window, also in the
                        # last one of an epoch, which may be shorter.
                        window = min(steps, batches - number // steps * steps)
                        accelerator.backward(loss * (steps / window))
                    with timer.phase("optimizer"):
                        # Only where gradients were exchanged: in between they are those of this
                        # rank and of a part of the window. accelerate unscales them first.
                        if accelerator.sync_gradients:
                            done = (progress.epoch + (number + 1) / batches) / config.n_epochs
                            # By hand: a prepared scheduler would step once for each rank.
                            set_rate(optimizer, plan.learning_rate * schedule(done, config.warmup))
                            norm = accelerator.clip_grad_norm_(model.parameters(), config.clip_norm)
                        optimizer.step()
                        optimizer.zero_grad()
                total += loss.detach()
                if not accelerator.sync_gradients:
                    continue
                if average is not None:
                    average.update(bare)
                # Whether a rank was asked to end travels with the loss, so that all know it.
                told = torch.stack([total, torch.full_like(total, request.received)])
                summed, asked = accelerator.reduce(told).tolist()
                total.zero_()
                if accelerator.scaler is None and not math.isfinite(float(norm)):
                    raise diverged(progress, plan)
                progress.loss += summed / world.world_size
                progress.consumed, progress.step = (number + 1) * each, progress.step + 1
                show.step(done)
                profiled_step()
                every, within = config.checkpoint_every, number + 1 < batches
                if within and (asked or (every and progress.step % every == 0)):
                    save(accelerator, whole, config, world)
                    if asked:
                        raise stopped(config.output_dir / name_of(progress))

            metric = validation_loss(
                average.module if average is not None else bare, validation_loader, accelerator
            )
            train_loss = progress.loss / batches
            if not (math.isfinite(train_loss) and math.isfinite(metric)):
                raise diverged(progress, plan)
            seconds, rate = time.perf_counter() - started, optimizer.param_groups[0]["lr"]
            record = Epoch(progress.epoch, train_loss, metric, rate, seconds, timer.take())
            progress.end_epoch(record, name_of(progress))
            save(accelerator, whole, config, world)
            show.epoch(record)
            curve(record)
            if asked and progress.epoch < config.n_epochs:
                raise stopped(config.output_dir / name_of(progress))
    return progress


def _begin(
    bare: FlowTransformer,
    loaders: list[Any],
    plan: Plan,
    config: GenerationConfig,
    accelerator: Accelerator,
    world: World,
) -> tuple[Any, Any, list[Any], Whole]:
    """Return what accelerate makes of model, optimizer and loaders, and where all of it stands."""
    optimizer: Any = torch.optim.AdamW(
        bare.parameters(), lr=plan.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    model, optimizer, *loaders = accelerator.prepare(bare, optimizer, *loaders)
    nothing = model(*_nothing(accelerator.device))
    settle_buckets(torch.stack([part.sum() for part in nothing]).sum(), optimizer)
    # After prepare(), which gave every rank the weights of rank 0.
    average = ExponentialMovingAverage(bare, config.ema_decay) if config.ema_decay else None
    whole = Whole({"system": SYSTEM, **config.decisive()}, Progress(), bare, average)
    register(accelerator, whole)
    # The one thing that may differ by rank: what noise is drawn. (The noise of the flow has
    # generators of its own, see `Noised`; these are for dropout and the like.)
    seed_generators(config.random_seed, world.rank)
    restore(accelerator, whole, config, world)
    return model, optimizer, loaders, whole


def _loader(
    dataset: Dataset[Any], plan: Plan, config: TrainingConfig, world: World, *, shuffle: bool
) -> DataLoader[Any]:
    workers = config.num_workers
    return DataLoader(
        dataset,
        batch_size=plan.batch_size,
        shuffle=shuffle,
        # The rest of an epoch would be shared unevenly, and accelerate would fill it up with
        # samples from its start. Which ones are left out is another matter in each epoch.
        drop_last=shuffle,
        num_workers=default_workers(world) if workers is None else workers,
        worker_init_fn=heed_only_the_parent,
        pin_memory=world.device.type == "cuda",
        generator=torch.Generator(),
    )


def _nothing(device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (
        torch.zeros(0, 1, 8, 8, device=device),
        torch.zeros(0, device=device),
        torch.zeros(0, dtype=torch.int64, device=device),
    )
