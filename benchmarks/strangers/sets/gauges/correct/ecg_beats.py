"""Beat classification; fine-tune from a parallel checkpoint in a bare model.

    torchrun --nproc_per_node=2 ecg_beats.py
"""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def beats(n=400, seed=0):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(4, (n,), generator=g)
    t = torch.linspace(0, 6.28, 40)
    wave = torch.sin(t * (1 + kind[:, None].float())) + 0.4 * torch.randn(n, 40, generator=g)
    return TensorDataset(wave, kind)


def make_model():
    return nn.Sequential(nn.Linear(40, 48), nn.ReLU(), nn.Linear(48, 4))


def fit(model, data, epochs):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 25, sampler=sampler)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, k in loader:
            loss = nn.functional.cross_entropy(model(x), k)
            opt.zero_grad()
            loss.backward()
            opt.step()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    path = os.path.join(folder[0], "stage1.pt")

    model = DDP(make_model())
    fit(model, beats(), 3)
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()

    state = torch.load(path, map_location="cpu", weights_only=True)
    consume_prefix_in_state_dict_if_present(state, "module.")
    bare = make_model()
    bare.load_state_dict(state)
    tuned = DDP(bare)
    fit(tuned, beats(seed=5), 2)

    test = beats(200, seed=9)
    if rank == 0:
        with torch.no_grad():
            hit = (bare(test.tensors[0]).argmax(1) == test.tensors[1]).float().mean()
        print(f"accuracy {hit:.3f}")
        os.remove(path)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
