import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

# character model of SMILES strings, trained in two stages: the second one continues from the first

ALPHABET = "^CNOc1n2o()=#$"


def get_global_rank():
    return dist.get_rank() if dist.is_initialized() else 0


def log(*what):
    if get_global_rank() == 0:
        print(*what, flush=True)


def barrier():
    if dist.is_initialized():
        dist.barrier()


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    rows = torch.randint(1, len(ALPHABET) - 1, (n, 24), generator=g)
    rows[:, 1::2] = (rows[:, ::2] + 1) % (len(ALPHABET) - 1)
    return rows


class CharLM(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(len(ALPHABET), dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, len(ALPHABET))

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def save_checkpoint(cfg, model, step):
    if get_global_rank() == 0:
        tmp = cfg["checkpoint"] + ".tmp"
        torch.save({"model": model.module.state_dict(), "step": step}, tmp)
        os.replace(tmp, cfg["checkpoint"])
    barrier()


def load_checkpoint(cfg, model):
    state = torch.load(cfg["checkpoint"])
    model.load_state_dict(state["model"])
    barrier()
    log("resumed at step", state["step"])
    return state["step"]


def train(cfg):
    torch.manual_seed(cfg["seed"])
    model, step = CharLM(cfg["dim"]), 0

    if get_global_rank() == 0:
        log("Configuration:")
        log(json.dumps(cfg))

        if cfg["allow_resume"] and os.path.exists(cfg["checkpoint"]):
            step = load_checkpoint(cfg, model)

    data = corpus(256, seed=get_global_rank())
    model = DistributedDataParallel(model)
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    while step < cfg["max_steps"]:
        batch = data[torch.arange(step * 16, step * 16 + 16) % len(data)]
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 10 == 0:
            log(f"step {step}: {loss.item():.3f}")
    save_checkpoint(cfg, model, step)


def main(argv):
    folder = argv[1] if len(argv) > 1 else tempfile.gettempdir()
    cfg = dict(seed=6, dim=24, lr=3e-3, max_steps=20, allow_resume=False,
               checkpoint=os.path.join(folder, f"smiles_{os.environ.get('MASTER_PORT', 0)}.pt"))
    dist.init_process_group("gloo")
    train(cfg)
    train({**cfg, "max_steps": 40, "lr": 1e-3, "allow_resume": True})


if __name__ == "__main__":
    main(sys.argv)
    dist.destroy_process_group()
