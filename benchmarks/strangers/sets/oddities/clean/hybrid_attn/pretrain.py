import json
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from modules import HybridLM

CONFIG = json.loads(os.environ.get("HYBRID_CONFIG", json.dumps({
    "vocab": 20, "dim": 24, "ctx": 24, "steps": 60, "batch": 8, "lr": 3e-3, "log": 20,
    "layer_types": ["sliding", "chunked", "full", "dilated", "strided", "sliding"],
})))


def copy_task(batch, ctx, vocab, g):
    """Second half of each line repeats the first half."""
    half = torch.randint(1, vocab, (batch, ctx // 2), generator=g)
    return torch.cat([half, half], 1)


def evaluate(model, cfg):
    g = torch.Generator().manual_seed(999)
    tok = copy_task(64, cfg["ctx"], cfg["vocab"], g)
    with torch.no_grad():
        logits = model.module(tok[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tok[:, 1:].flatten()).item()


def main(cfg):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(cfg.get("seed", 0))
    model = DistributedDataParallel(HybridLM(cfg["vocab"], cfg["dim"], cfg["layer_types"]))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    g = torch.Generator().manual_seed(rank)
    for step in range(1, cfg["steps"] + 1):
        tok = copy_task(cfg["batch"], cfg["ctx"], cfg["vocab"], g)
        loss = F.cross_entropy(model(tok[:, :-1]).flatten(0, 1), tok[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % cfg["log"] == 0:
            print(f"rank {rank} step {step} loss {loss.item():.3f} held-out {evaluate(model, cfg):.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(CONFIG)
