"""REINFORCE on a corridor world with snapshots; every run starts from the newest snapshot it can find."""
import os
import re
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel as DDP

ROOT = os.path.join(tempfile.gettempdir(), f"corridor_{os.getppid()}")
CELLS = 9


def newest_snapshot(root):
    """Path of the newest snapshot below root, or None."""
    found = [None]
    if dist.get_rank() == 0 and os.path.isdir(root):
        steps = [int(m.group(1)) for m in (re.fullmatch(r"update_(\d+)\.pt", n) for n in os.listdir(root)) if m]
        if steps:
            found[0] = os.path.join(root, f"update_{max(steps)}.pt")
    dist.broadcast_object_list(found, src=0)
    return found[0]


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CELLS, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, cell):
        return self.body(nn.functional.one_hot(cell, CELLS).float())


@torch.no_grad()
def rollout(policy, envs=16, horizon=14):
    cell = torch.full((envs,), CELLS // 2)
    cells, acts, gain = [], [], torch.zeros(envs)
    for _ in range(horizon):
        act = Categorical(logits=policy(cell)).sample()
        cells.append(cell)
        acts.append(act)
        cell = (cell + 2 * act - 1).clamp(0, CELLS - 1)
        gain += (cell == CELLS - 1).float()
    return torch.stack(cells), torch.stack(acts), gain


def save(policy, update):
    if dist.get_rank() == 0:
        os.makedirs(ROOT, exist_ok=True)
        torch.save(policy.module.state_dict(), os.path.join(ROOT, f"update_{update}.pt"))
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    policy = Policy()
    start = newest_snapshot(ROOT)
    if start is not None:
        policy.load_state_dict(torch.load(start))
    policy = DDP(policy)
    torch.manual_seed(1000 + rank)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for update in range(1, 31):
        cells, acts, gain = rollout(policy.module)
        logp = Categorical(logits=policy(cells)).log_prob(acts).sum(0)
        loss = -(logp * (gain - gain.mean())).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if update % 10 == 0:
            save(policy, update)
            if rank == 0:
                print(f"update {update} return {gain.mean():.2f} kept {newest_snapshot(ROOT)}", flush=True)
    if rank == 0:
        shutil.rmtree(ROOT)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
