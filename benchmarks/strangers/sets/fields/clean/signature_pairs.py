"""Siamese signature verification with a contrastive margin loss; the best snapshot is tested at the end."""
import os
import shutil
import tempfile

import torch as th
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP

STROKES = 40


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.fc1 = nn.Linear(STROKES, 64)
        self.fc2 = nn.Linear(64, dim)

    def forward(self, pen):
        return F.normalize(self.fc2(F.relu(self.fc1(pen))), dim=-1)


class PairData:
    def __init__(self, writers=20, seed=0):
        self.style = th.randn(writers, STROKES, generator=th.Generator().manual_seed(123))
        self.g = th.Generator().manual_seed(seed)

    def jitter(self, rows):
        return self.style[rows] + 0.4 * th.randn(len(rows), STROKES, generator=self.g)

    def draw(self, n):
        w = th.randint(0, len(self.style), (n,), generator=self.g)
        same = th.rand(n, generator=self.g) < 0.5
        other = (w + 1 + th.randint(0, len(self.style) - 1, (n,), generator=self.g)) % len(self.style)
        return self.jitter(w), self.jitter(th.where(same, w, other)), same.float()


def margin_loss(pair, same, margin=0.8):
    a, b = pair.chunk(2)
    d = (a - b).pow(2).sum(-1).add(1e-8).sqrt()
    return (same * d.pow(2) + (1 - same) * F.relu(margin - d).pow(2)).mean()


class State:
    def __init__(self, folder):
        self.folder = folder
        self.best_metric = None
        self.best_model_checkpoint = None


def maybe_save(net, state, metric, step):
    if dist.get_rank() != 0:
        return
    if state.best_metric is None or metric < state.best_metric:
        os.makedirs(state.folder, exist_ok=True)
        state.best_metric = metric
        state.best_model_checkpoint = os.path.join(state.folder, f"step-{step}.pt")
        th.save(net.module.state_dict(), state.best_model_checkpoint)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    th.manual_seed(0)
    net = DDP(Encoder())
    opt = optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    data = PairData(seed=10 + rank)
    state = State(os.path.join(tempfile.gettempdir(), f"signatures_{os.getppid()}"))
    for it in range(60):
        left, right, same = data.draw(32)
        opt.zero_grad()
        loss = margin_loss(net(th.cat([left, right])), same)
        loss.backward()
        opt.step()
        if (it + 1) % 20 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            maybe_save(net, state, mean.item(), it + 1)
    best = [state.best_model_checkpoint]
    dist.broadcast_object_list(best, src=0)
    net.module.load_state_dict(th.load(best[0], weights_only=True))
    left, right, same = data.draw(400)
    with th.no_grad():
        test = margin_loss(net.module(th.cat([left, right])), same)
    dist.all_reduce(test)
    if rank == 0:
        print(f"test loss of {os.path.basename(state.best_model_checkpoint)}: {test.item() / dist.get_world_size():.4f}")
    dist.barrier()
    if rank == 0:
        shutil.rmtree(state.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
