"""Flow-matching action head for a two-joint arm (observation -> action chunk)."""
import dataclasses
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclasses.dataclass
class TrainArgs:
    seed: int = 42
    horizon: int = 6
    batch: int = 16
    epochs: int = 4
    lr: float = 2e-3


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Demonstrations(Dataset):
    def __init__(self, args, n=512):
        rng = np.random.default_rng(5)
        goal = rng.uniform(-1, 1, size=(n, 2)).astype("float32")
        ramp = np.linspace(0.2, 1, args.horizon, dtype="float32")
        self.obs = torch.from_numpy(goal)
        self.act = torch.from_numpy((goal[:, None, :] * ramp[None, :, None]).reshape(n, -1))

    def __len__(self):
        return len(self.obs)

    def __getitem__(self, i):
        return self.obs[i], self.act[i]


class FlowHead(nn.Module):
    def __init__(self, args):
        super().__init__()
        width = 2 * args.horizon
        self.net = nn.Sequential(nn.Linear(2 + width + 1, 96), nn.SiLU(), nn.Linear(96, width))

    def forward(self, obs, action):
        noise = torch.randn_like(action)
        t = torch.distributions.Beta(1.5, 1.0).sample((len(action), 1))
        x_t = t * noise + (1 - t) * action
        v = self.net(torch.cat([obs, x_t, t], -1))
        return (v - (noise - action)).pow(2).mean()


def main(args):
    dist.init_process_group("gloo")
    set_seed(args.seed)
    data = Demonstrations(args)
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, args.batch, sampler=sampler, drop_last=True)
    policy = DDP(FlowHead(args))
    set_seed(args.seed + 1 + dist.get_rank())
    opt = torch.optim.AdamW(policy.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        running = []
        for obs, act in loader:
            loss = policy(obs, act)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running.append(loss.item())
        if dist.get_rank() == 0:
            print(f"epoch {epoch} flow loss {np.mean(running):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(TrainArgs())
