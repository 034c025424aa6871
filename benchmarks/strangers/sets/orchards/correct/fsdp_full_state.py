"""FSDP on CPU: everybody helps to build the full state dict, one process writes it."""
import functools
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n = nn.LayerNorm(d)
        self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.b(torch.nn.functional.gelu(self.a(self.n(x))))


class Copier(nn.Module):
    """Predict the token that stood `lag` places before."""

    def __init__(self, vocab=30, d=32, lag=2, depth=2):
        super().__init__()
        self.lag = lag
        self.e = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Layer((lag + 1) * d) for _ in range(depth))
        self.head = nn.Linear((lag + 1) * d, vocab)

    def forward(self, x):
        e = self.e(x)
        h = torch.cat([e[:, i:e.shape[1] - self.lag + i] for i in range(self.lag + 1)], -1)
        for l in self.layers:
            h = l(h)
        return self.head(h)


def shard(model, mesh):
    for l in model.layers:
        fully_shard(l, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def full_state(model):
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def save(model, path):
    state = full_state(model)
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()


def restore(model, path):
    state = torch.load(path, weights_only=True)
    set_model_state_dict(model, state, options=StateDictOptions(full_state_dict=True))


def batch(gen, n=32, length=16):
    x = torch.randint(30, (n, length), generator=gen)
    return x, x[:, :-2]


def train(model, opt, gen, steps, tag):
    for i in range(steps):
        x, y = batch(gen)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if i % 15 == 0 and dist.get_rank() == 0:
            print(f"{tag} step {i} loss {loss.item():.3f}", flush=True)


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    path = os.path.join(box[0], "full.pt")
    gen = torch.Generator().manual_seed(10 + dist.get_rank())

    torch.manual_seed(0)
    model = shard(Copier(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    train(model, opt, gen, 45, "first")
    save(model, path)

    torch.manual_seed(1)
    again = shard(Copier(), mesh)
    restore(again, path)
    train(again, torch.optim.AdamW(again.parameters(), lr=3e-3), gen, 31, "second")
    dist.barrier()
    if dist.get_rank() == 0:
        os.remove(path)
        os.rmdir(box[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
