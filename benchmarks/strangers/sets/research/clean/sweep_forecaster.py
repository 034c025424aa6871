"""Hyper-parameter sweep for a short-horizon load forecaster. Each trial trains on all workers."""
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SWEEP = {
    "method": "random",
    "parameters": {
        "hidden_size": {"values": [8, 12, 16, 24, 32, 40, 48, 56, 64]},
        "num_layers": {"values": [1, 2]},
        "learning_rate": {"min": 1e-3, "max": 1e-2},
    },
}


class Agent:
    """Draws trial configurations from the sweep definition."""

    def __init__(self, sweep):
        self.sweep = sweep
        self.rng = random.Random()

    def next_config(self):
        out = {}
        for name, spec in self.sweep["parameters"].items():
            if "values" in spec:
                out[name] = self.rng.choice(spec["values"])
            else:
                out[name] = math.exp(self.rng.uniform(math.log(spec["min"]), math.log(spec["max"])))
        return out


class LoadCurve(Dataset):
    def __init__(self, length=420, context=24, horizon=6):
        g = torch.Generator().manual_seed(17)
        t = torch.arange(length).float()
        self.series = torch.sin(t * 2 * math.pi / 24) + 0.5 * torch.sin(t * 2 * math.pi / 168) + 0.1 * torch.randn(length, generator=g)
        self.context, self.horizon = context, horizon

    def __len__(self):
        return len(self.series) - self.context - self.horizon

    def __getitem__(self, i):
        mid = i + self.context
        return self.series[i:mid, None], self.series[mid:mid + self.horizon]


class Forecaster(nn.Module):
    def __init__(self, hidden_size, num_layers, horizon=6):
        super().__init__()
        self.rnn = nn.GRU(1, hidden_size, num_layers, batch_first=True)
        self.head = nn.Linear(hidden_size, horizon)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def run_trial(number, config, rank):
    torch.manual_seed(number)
    data = LoadCurve()
    sampler = DistributedSampler(data, drop_last=True, seed=number)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DDP(Forecaster(config["hidden_size"], config["num_layers"]))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["learning_rate"])
    for epoch in range(2):
        sampler.set_epoch(epoch)
        tally = torch.zeros(2)
        for past, future in loader:
            loss = nn.functional.l1_loss(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tally += torch.tensor([loss.item() * len(past), len(past)])
    dist.all_reduce(tally)
    score = (tally[0] / tally[1]).item()
    if rank == 0:
        print(f"trial {number}: hidden={config['hidden_size']} layers={config['num_layers']} "
              f"lr={config['learning_rate']:.4f} -> train MAE {score:.4f}", flush=True)
    return score


def main(count=3):
    rank = dist.get_rank()
    agent = Agent(SWEEP)
    results = []
    for number in range(count):
        box = [agent.next_config() if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        config = box[0]
        results.append((run_trial(number, config, rank), number))
    if rank == 0:
        print("best trial:", min(results)[1], flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
