"""Steps per second of the stack against a plain loop, accelerate and Lightning, in one run.

    python -m benchmarks.steps [--nproc 2] [--rounds 5] [--steps 60]

The same model, data, optimizer and clipping everywhere, on gloo with one thread per rank. `plain`
is what a person writes by hand: DDP, a DistributedSampler, backward, clip, step. `accelerate` and
`lightning` (where installed) are their own loops over the same. The ways take turns, round after
round, in fresh processes, so that what else the machine does falls on all alike; printed are the
median of each and of the ratios within a round. Promised: at least 0.98 of the plain loop, and at
least as fast as the other two. `scaling` is what the stack does on all ranks against one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH, BATCH, WARM_UP = 512, 64, 10
PROMISED = {"plain": 0.98, "accelerate": 1.0, "lightning": 1.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank_of:
        seconds = WAYS[asked.rank_of](asked.steps)
        if os.environ.get("RANK", "0") == "0":
            print(json.dumps(seconds))
        return 0
    ways = [way for way in WAYS if way == "plain" or importlib.util.find_spec(NEEDS[way])]
    rates: dict[str, list[float]] = {way: [] for way in (*ways, "alone")}
    for number in range(asked.rounds):
        for way in rates:
            nproc = 1 if way == "alone" else asked.nproc
            rate = _measured("stack" if way == "alone" else way, nproc, asked.steps)
            rates[way].append(rate)
            print(f"round {number + 1}  {way:10}  {rate:7.1f} steps/s", file=sys.stderr, flush=True)
    return _told(rates)


def _told(rates: dict[str, list[float]]) -> int:
    print("way         steps/s  the stack against it, median of the rounds (each)")
    broken = False
    for way, measured in rates.items():
        ratios = [ours / theirs for ours, theirs in zip(rates["stack"], measured, strict=True)]
        ratio = statistics.median(ratios)
        each = " ".join(f"{one:.2f}" for one in ratios)
        what = "  scaling per rank" if way == "alone" else ""
        print(f"{way:10}  {statistics.median(measured):7.1f}  {ratio:.3f} ({each}){what}")
        broken |= ratio < PROMISED.get(way, 0)
    return int(broken)


def _measured(way: str, nproc: int, steps: int) -> float:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launch, f"--nproc-per-node={nproc}", "-m", "benchmarks.steps"]
    done = subprocess.run(
        [*command, f"--rank-of={way}", f"--steps={steps}"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return steps / float(done.stdout.splitlines()[-1])


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


class _Clock:
    """Counts the seconds from the end of the warm-up to the last step."""

    def __init__(self, steps: int) -> None:
        self.left = steps + WARM_UP
        self.steps = steps
        self.started = self.seconds = 0.0

    def tick(self) -> None:
        self.left -= 1
        if self.left == self.steps:
            self.started = time.perf_counter()
        if self.left == 0:
            self.seconds = time.perf_counter() - self.started

    def step(self, done: float) -> None:
        self.tick()

    def epoch(self, record: Any) -> None:
        pass


def _plain(steps: int) -> float:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler

    dist.init_process_group("gloo")
    data = _data(steps)
    loader = DataLoader(data, BATCH, sampler=DistributedSampler(data))
    model = DistributedDataParallel(_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = _Clock(steps)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        clock.tick()
    return clock.seconds


def _stack(steps: int) -> float:
    from dataclasses import dataclass

    import torch

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

    clock = _Clock(steps)
    with tempfile.TemporaryDirectory() as folder, session(backend="gloo") as world:
        # The plain loop averages no weights either.
        options: dict[str, Any] = {"n_epochs": 1, "batch_size": BATCH, "ema_decay": None}
        config = TrainingConfig(output_dir=Path(folder), learning_rate=1e-3, **options)
        fit(
            _model(),
            _data(steps),
            collate=collate,
            loss_sum=lambda net, rows: (net(rows.inputs) - rows.labels).square().sum(),
            validate=lambda net: 0.0,
            config=config,
            settings={"system": "rows"},
            world=world,
            show=clock,
        )
    return clock.seconds


def _accelerate(steps: int) -> float:
    import torch
    from accelerate import Accelerator
    from torch import nn
    from torch.utils.data import DataLoader

    accelerator = Accelerator(cpu=True)
    model = _model()
    optimizer: Any = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader: Any = DataLoader(_data(steps), BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    clock = _Clock(steps)
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        clock.tick()
    accelerator.end_training()
    return clock.seconds


def _lightning(steps: int) -> float:
    import lightning
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    clock = _Clock(steps)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = _model()

        def training_step(self, batch: Any, index: int) -> Any:
            inputs, labels = batch
            return nn.functional.mse_loss(self.model(inputs), labels)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

        def on_train_batch_end(self, *batch: Any) -> None:
            clock.tick()

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["WORLD_SIZE"]),
        strategy="ddp",
        max_epochs=1,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(_data(steps), BATCH, shuffle=True))
    return clock.seconds


WAYS = {
    "stack": _stack,
    "plain": _plain,
    "accelerate": _accelerate,
    "lightning": _lightning,
}
NEEDS = {"stack": "torch", "accelerate": "accelerate", "lightning": "lightning"}


if __name__ == "__main__":
    sys.exit(main())
