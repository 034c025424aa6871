"""Steps per second of the stack against a plain loop, accelerate and Lightning, in one run.

    python -m benchmarks.steps [--nproc 2] [--rounds 3] [--steps 300]

The same model, data, loss, AdamW and clipping everywhere, no average of the weights, on gloo with
one thread per rank. `plain` is what a person writes by hand: DDP, a DistributedSampler, backward,
clip, step, all by their defaults. `tuned` is the same loop with what the stack turns on besides: a
fused AdamW, and gradients that are views of DDP's buckets; against it, what the stack does more in
each step is seen alone. `accelerate` and `lightning` (where installed) are their own loops, tuned
alike. The ways take turns step by step, in the same processes, so that what else the machine does
falls on all alike. Printed are the median step of each, and its ratio to that of the stack, by the
clock and by the CPU time of the loop's own thread (gloo's threads are not in it), which says more
on a busy machine. Promised: at least 0.98 of the plain loop, and at least as fast as the libraries.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WIDTH, BATCH, WARM_UP = 512, 64, 10
PROMISED = {"plain": 0.98, "accelerate": 1.0, "lightning": 1.0}
Steps = list[tuple[float, float]]
"""Of each step, the seconds by the clock and those of the CPU."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--ways", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.ways:
        _rank(asked.ways, asked.steps)
        return 0
    ways = [way for way in WAYS if importlib.util.find_spec(NEEDS.get(way, "torch"))]
    for way in [way for way in WAYS if way not in ways]:
        print(f"{way} is left out: it is not installed")
    rounds = []
    for _ in range(asked.rounds):
        steps = _launched(ways, asked.nproc, asked.steps)
        rounds.append({way: _medians(taken) for way, taken in steps.items()})
    return int(_told(rounds))


def _told(rounds: Sequence[dict[str, tuple[float, float]]]) -> bool:
    """Print what the rounds came to, and return whether a promise was broken."""
    print("the stack's speed by that of each way: median (each round)")
    print(f"{'way':10}  ms a step  {'by the clock':31}  by CPU time")
    broken = False
    for way in rounds[0]:
        step = statistics.median(times[way][0] for times in rounds)
        by_clock = [times[way][0] / times["stack"][0] for times in rounds]
        by_cpu = [times[way][1] / times["stack"][1] for times in rounds]
        print(f"{way:10}  {1000 * step:9.2f}  {_ratio(by_clock):31}  {_ratio(by_cpu)}")
        broken |= statistics.median(by_clock) < PROMISED.get(way, 0)
    return broken


def _ratio(each: Sequence[float]) -> str:
    return f"{statistics.median(each):.3f} ({' '.join(f'{one:.3f}' for one in each)})"


def _medians(steps: Steps) -> tuple[float, float]:
    by_clock, by_cpu = zip(*steps[WARM_UP:], strict=True)
    return statistics.median(by_clock), statistics.median(by_cpu)


def _launched(ways: Sequence[str], nproc: int, steps: int) -> dict[str, Steps]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launch, f"--nproc-per-node={nproc}", "-m", "benchmarks.steps"]
    done = subprocess.run(
        [*command, f"--steps={steps}", "--ways", *ways],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    taken: dict[str, Steps] = json.loads(done.stdout.splitlines()[-1])
    return taken


def _rank(ways: Sequence[str], steps: int) -> None:
    """Let each way take its steps, in turn, and print how long they took."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    turns = [_Turn() for _ in ways]
    for turn, following in zip(turns, [*turns[1:], turns[0]], strict=True):
        turn.following = following
    threads = [
        threading.Thread(target=turn.taken, args=(WAYS[way], steps))
        for way, turn in zip(ways, turns, strict=True)
    ]
    for thread in threads:
        thread.start()
    turns[0].ready.release()
    for thread in threads:
        thread.join()
    if dist.get_rank() == 0:
        print(
            json.dumps({way: turn.steps for way, turn in zip(ways, turns, strict=True)}), flush=True
        )
    # DDP's wrappers go with their threads in no order: destroying the group might wait for them.
    os._exit(0)


class _Turn:
    """Lets one way take a step at a time, in a thread of its own, and measures it.

    All ranks take turns in the same order, so their collectives meet.
    """

    following: _Turn

    def __init__(self) -> None:
        self.ready = threading.Semaphore(0)
        self.steps: Steps = []

    def taken(self, way: Callable[[int, _Turn], None], steps: int) -> None:
        self._begin()
        try:
            way(steps, self)
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # or the others wait for their turn for ever
        self.following.ready.release()

    def step(self, done: float = 0.0) -> None:
        began, cpu = self.began
        self.steps.append((time.perf_counter() - began, time.thread_time() - cpu))
        self.following.ready.release()
        self._begin()

    def epoch(self, record: Any) -> None:
        pass

    def _begin(self) -> None:
        self.ready.acquire()
        self.began = time.perf_counter(), time.thread_time()


def _model() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = [part for _ in range(4) for part in (nn.Linear(WIDTH, WIDTH), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1))


def _data(steps: int) -> Any:
    import torch
    from torch.utils.data import TensorDataset

    length = BATCH * int(os.environ["WORLD_SIZE"]) * (steps + WARM_UP)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(length, WIDTH, generator=generator)
    return TensorDataset(inputs, inputs.sum(1, keepdim=True))


def _plain(steps: int, turn: _Turn, *, tuned: bool = False) -> None:
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler

    data = _data(steps)
    loader = DataLoader(data, BATCH, sampler=DistributedSampler(data))
    model = DistributedDataParallel(_model(), gradient_as_bucket_view=tuned)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=tuned or None)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        turn.step()


def _stack(steps: int, turn: _Turn) -> None:
    from dataclasses import dataclass

    import torch
    from torch import nn

    from ddpdoctor.stack.batch import TensorBatch
    from ddpdoctor.stack.config import TrainingConfig
    from ddpdoctor.stack.process_group import session
    from ddpdoctor.stack.trainer import fit

    @dataclass(frozen=True)
    class Rows(TensorBatch):
        inputs: torch.Tensor
        labels: torch.Tensor

        def __len__(self) -> int:
            return len(self.labels)

    def collate(samples: Sequence[Any]) -> Rows:
        if not samples:
            return Rows(torch.zeros(0, WIDTH), torch.zeros(0, 1))
        inputs, labels = zip(*samples, strict=True)
        return Rows(torch.stack(inputs), torch.stack(labels))

    with tempfile.TemporaryDirectory() as folder, session(backend="gloo") as world:
        # The plain loop averages no weights either.
        options: dict[str, Any] = {"n_epochs": 1, "batch_size": BATCH, "ema_decay": None}
        config = TrainingConfig(output_dir=Path(folder), learning_rate=1e-3, **options)
        fit(
            _model(),
            _data(steps),
            collate=collate,
            loss_sum=lambda net, rows: nn.functional.mse_loss(
                net(rows.inputs), rows.labels, reduction="sum"
            ),
            validate=lambda net: 0.0,
            config=config,
            settings={"system": "rows"},
            world=world,
            show=turn,
        )


def _accelerate(steps: int, turn: _Turn) -> None:
    import torch
    from accelerate import Accelerator, DistributedDataParallelKwargs
    from torch import nn
    from torch.utils.data import DataLoader

    views = DistributedDataParallelKwargs(gradient_as_bucket_view=True)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[views])
    model = _model()
    optimizer: Any = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader: Any = DataLoader(_data(steps), BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        turn.step()


def _lightning(steps: int, turn: _Turn) -> None:
    import lightning
    import torch
    from lightning.pytorch.strategies import DDPStrategy
    from torch import nn
    from torch.utils.data import DataLoader

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = _model()

        def training_step(self, batch: Any, index: int) -> Any:
            inputs, labels = batch
            return nn.functional.mse_loss(self.model(inputs), labels)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)

        def on_train_batch_end(self, *batch: Any) -> None:
            turn.step()

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["WORLD_SIZE"]),
        strategy=DDPStrategy(gradient_as_bucket_view=True),
        max_epochs=1,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(_data(steps), BATCH, shuffle=True))


WAYS = {
    "stack": _stack,
    "plain": _plain,
    "tuned": functools.partial(_plain, tuned=True),
    "accelerate": _accelerate,
    "lightning": _lightning,
}
NEEDS = {"accelerate": "accelerate", "lightning": "lightning"}


if __name__ == "__main__":
    sys.exit(main())
