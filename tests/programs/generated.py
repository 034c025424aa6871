"""Correct training programs, made up: models, data, loops and collectives as people combine them.

A program is a list of choices; `source` writes the script that makes them. Nothing in it is wrong,
so whatever a doctor says of it above a note is a false alarm.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Program:
    """One program."""

    seeded: bool
    """The model is seeded alike on all ranks; DDP makes it so anyway."""
    model: str
    data: str
    optimizer: str
    accumulate: int
    clip: bool
    scheduler: bool
    noise: bool
    """Drawn by each rank from a generator of its own."""
    evaluation: str
    saving: str
    epochs: int
    leave: str

    @property
    def source(self) -> str:
        """The script."""
        return _SCRIPT.format(
            seed="torch.manual_seed(3)" if self.seeded else "pass",
            model=_MODELS[self.model],
            data=_DATA[self.data],
            optimizer=_OPTIMIZERS[self.optimizer],
            scheduler="torch.optim.lr_scheduler.StepLR(optimizer, 5)" if self.scheduler else "None",
            accumulate=self.accumulate,
            clip="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)" if self.clip else "pass",
            noise="x + 0.01 * torch.randn(x.shape, generator=own)" if self.noise else "x",
            evaluation=_EVALUATIONS[self.evaluation],
            saving=_SAVINGS[self.saving],
            epochs=self.epochs,
            leave=_LEAVING[self.leave],
        )


programs = st.builds(
    Program,
    seeded=st.booleans(),
    model=st.sampled_from(["linear", "batchnorm", "dropout", "frozen"]),
    data=st.sampled_from(["sampler", "shards", "stream"]),
    optimizer=st.sampled_from(["sgd", "adam"]),
    accumulate=st.sampled_from([1, 2]),
    clip=st.booleans(),
    scheduler=st.booleans(),
    noise=st.booleans(),
    evaluation=st.sampled_from(["none", "all", "rank0", "gathered"]),
    saving=st.sampled_from(["none", "last", "best"]),
    epochs=st.integers(1, 3),
    leave=st.sampled_from(["barrier", "plain", "nothing"]),
)

_MODELS = {
    "linear": "nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))",
    "batchnorm": "nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Linear(12, 2))",
    "dropout": "nn.Sequential(nn.Linear(6, 12), nn.Dropout(0.2), nn.Linear(12, 2))",
    "frozen": "nn.Sequential(nn.Linear(6, 12).requires_grad_(False), nn.ReLU(), nn.Linear(12, 2))",
}
_DATA = {
    "sampler": """
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)""",
    "shards": """
    sampler = None
    loader = DataLoader(Subset(data, range(rank, 96, world)), batch_size=8, shuffle=True)""",
    "stream": """
    sampler = None
    part = torch.Generator().manual_seed(50 + rank)
    loader = [(torch.randn(8, 6, generator=part), torch.ones(8).long()) for _ in range(6)]""",
}
_OPTIMIZERS = {
    "sgd": "torch.optim.SGD(wanted, lr=0.05, momentum=0.9)",
    "adam": "torch.optim.AdamW(wanted, lr=1e-3)",
}
_EVALUATIONS = {
    "none": "score = 0.0",
    "all": """
        with torch.no_grad():
            total = torch.tensor([float((bare(held) ** 2).sum()), float(len(held))])
        dist.all_reduce(total)
        score = float(total[0] / total[1])""",
    "rank0": """
        score = 0.0
        if rank == 0:
            with torch.no_grad():
                score = float((bare(held) ** 2).mean())
        box = [score]
        dist.broadcast_object_list(box, src=0)
        score = box[0]""",
    "gathered": """
        with torch.no_grad():
            mine = (bare(held) ** 2).sum(1)
        every = [torch.zeros_like(mine) for _ in range(world)]
        dist.all_gather(every, mine)
        score = float(torch.cat(every).mean())""",
}
_SAVINGS = {
    "none": "pass",
    "last": """
        if rank == 0:
            torch.save({"model": bare.state_dict(), "epoch": epoch}, "last.pt")
        dist.barrier()""",
    "best": """
        if score < best:
            best = score
            if rank == 0:
                torch.save({"model": bare.state_dict(), "epoch": epoch}, "best.pt")
        dist.barrier()""",
}
_LEAVING = {
    "barrier": """del model, optimizer, scheduler
    dist.barrier()
    dist.destroy_process_group()""",
    "plain": """del model, optimizer, scheduler
    dist.destroy_process_group()""",
    "nothing": "dist.barrier()",
}
_SCRIPT = """
import contextlib
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    {seed}
    bare = {model}
    model = DistributedDataParallel(bare)
    wanted = [p for p in model.parameters() if p.requires_grad]
    optimizer = {optimizer}
    scheduler = {scheduler}
    common = torch.Generator().manual_seed(1)
    own = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(96, 6, generator=common)
    data = TensorDataset(x, (x.sum(1) > 0).long())
    held = torch.randn(10, 6, generator=torch.Generator().manual_seed(200 + rank)){data}
    best = float("inf")
    for epoch in range({epochs}):
        model.train()
        if sampler is not None:
            sampler.set_epoch(epoch)
        batches = len(loader) // {accumulate} * {accumulate}
        for number, (x, y) in enumerate(loader, 1):
            if number > batches:
                break
            steps = number % {accumulate} == 0
            with contextlib.nullcontext() if steps else model.no_sync():
                loss = nn.functional.cross_entropy(model({noise}), y) / {accumulate}
                loss.backward()
            if steps:
                {clip}
                optimizer.step()
                optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        bare.eval()
        {evaluation}
        {saving}
    {leave}


main()
"""
