"""Kelp segmentation: processes 0 and 1 train, process 2 scores the snapshots in the meantime.

    torchrun --nproc_per_node=3 kelp_drones.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

TRAINERS, JUDGE = [0, 1], 2
STOP = -1


def frames(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 3, 12, 12, generator=g)
    return x, (x[:, 1] > 0.6).float()


def make_net():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))


def flat(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach()


def trainer(rank, group, epochs=8):
    x, y = frames(96, seed=rank)
    model = DDP(make_net(), process_group=group)
    opt = torch.optim.Adam(model.parameters(), lr=3e-2)
    for epoch in range(epochs):
        for i in range(0, len(x), 16):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[i:i + 16]).squeeze(1), y[i:i + 16])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            dist.send(torch.tensor([epoch]), JUDGE)
            dist.send(flat(model.module), JUDGE)
    if rank == 0:
        dist.send(torch.tensor([STOP]), JUDGE)


def judge():
    x, y = frames(200, seed=99)
    net = make_net()
    tag, weights = torch.zeros(1, dtype=torch.long), torch.zeros_like(flat(net))
    while True:
        dist.recv(tag, src=0)
        if tag.item() == STOP:
            break
        dist.recv(weights, src=0)
        nn.utils.vector_to_parameters(weights.clone(), net.parameters())
        with torch.no_grad():
            pred = (net(x).squeeze(1) > 0).float()
        iou = (pred * y).sum() / ((pred + y) > 0).float().sum()
        print(f"snapshot {tag.item()} iou {iou:.3f}", flush=True)


def main():
    rank = dist.get_rank()
    group = dist.new_group(TRAINERS)
    if rank in TRAINERS:
        trainer(rank, group)
    else:
        judge()
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
