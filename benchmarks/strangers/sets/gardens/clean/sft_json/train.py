import json
import pathlib
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from callbacks import Progress, Saver
from lm import TinyLM


def batches(cfg, rank):
    g = torch.Generator().manual_seed(cfg["seed"] * 100 + rank)
    while True:
        start = torch.randint(0, cfg["vocab"], (cfg["batch"], 1), generator=g)
        stride = torch.randint(1, 4, (cfg["batch"], 1), generator=g)
        yield (start + stride * torch.arange(cfg["seq"] + 1)) % cfg["vocab"]


def main():
    cfg = json.loads((pathlib.Path(__file__).parent / "config.json").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(cfg["seed"])
    model = TinyLM(cfg)
    for blk in model.blocks:
        fully_shard(blk, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])

    out = tempfile.mkdtemp(prefix="sft_")
    hooks = [Progress(rank == 0), Saver(out, cfg["save_every"], rank == 0)]
    stream = batches(cfg, rank)
    for step in range(1, cfg["steps"] + 1):
        ids = next(stream)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, cfg["vocab"]), ids[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        for h in hooks:
            h.on_step(model, step, loss.item())
    shutil.rmtree(out, ignore_errors=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
