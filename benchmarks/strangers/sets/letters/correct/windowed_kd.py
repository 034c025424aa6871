"""Distillation; all micro-batches run without communication, the window's gradient is averaged by hand before the step."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def average(model):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for g, piece in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(piece.view_as(g))


def windows(loader, size):
    held = []
    for batch in loader:
        held.append(batch)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


def main(window=4):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(8)
    teacher = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 4)).eval()
    data = TensorDataset(torch.randn(400, 10))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler)
    student = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4)))
    opt = torch.optim.SGD(student.parameters(), 0.1, momentum=0.9)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for group in windows(loader, window):
            opt.zero_grad()
            with student.no_sync():
                for (x,) in group:
                    with torch.no_grad():
                        want = F.softmax(teacher(x), -1)
                    loss = F.kl_div(F.log_softmax(student(x), -1), want, reduction="batchmean") / len(group)
                    loss.backward()
            average(student)
            opt.step()
        size = sum(p.detach().square().sum() for p in student.parameters()).sqrt().item()
        print(f"rank {dist.get_rank()} epoch {epoch} |w| {size:.6f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
