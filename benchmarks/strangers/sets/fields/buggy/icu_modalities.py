"""Mortality risk from ICU vitals, plus the nurse notes where a ward keeps them. Plain collectives, no wrapper."""
import torch
import torch.distributed as dist
import torch.nn as nn

STEPS, STAYS, CHANNELS, NOTE = 30, 12, 5, 20


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.vitals = nn.GRU(CHANNELS, 24, batch_first=True)
        self.out = nn.Linear(24, 1)
        self.notes = nn.Linear(NOTE, 24)

    def forward(self, series, notes=None):
        h = self.vitals(series)[1][-1]
        if notes is not None:
            h = h + torch.tanh(self.notes(notes))
        return self.out(h).squeeze(-1)


def ward_stream(rank):
    g = torch.Generator().manual_seed(50 + rank)
    for step in range(STEPS):
        series = torch.randn(STAYS, 16, CHANNELS, generator=g)
        label = (series[:, -4:, 0].mean(1) > 0).float()
        has_notes = rank == 0 or step % 5 != 4
        notes = torch.randn(STAYS, NOTE, generator=g) + label[:, None] if has_notes else None
        yield series, notes, label


def broadcast_weights(net):
    for p in net.parameters():
        dist.broadcast(p.data, src=0)


def average_gradients(net):
    world = dist.get_world_size()
    for p in net.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            p.grad /= world


def loss_per_ward(loss):
    all_losses = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(all_losses, loss.detach().reshape(1))
    return torch.cat(all_losses)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = Risk()
    broadcast_weights(net)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step, (series, notes, label) in enumerate(ward_stream(rank)):
        opt.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(series, notes), label)
        loss.backward()
        average_gradients(net)
        opt.step()
        wards = loss_per_ward(loss)
        if rank == 0 and step % 3 == 0:
            print(step, [round(v, 3) for v in wards.tolist()], flush=True)
    dist.destroy_process_group()


main()
