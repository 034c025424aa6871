import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD = 4
STUDENTS = [0, 1, 2]
TEACHER = 3


def student_loop(rank, group, steps):
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), process_group=group)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    torch.manual_seed(rank)
    for step in range(steps):
        x = torch.randn(12, 8)
        dist.send(x, dst=TEACHER)
        soft = torch.empty(12, 3)
        dist.recv(soft, src=TEACHER)
        loss = nn.functional.kl_div(net(x).log_softmax(1), soft, reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, group=group)
    if rank == STUDENTS[0]:
        print(f"student loss {mean.item() / len(STUDENTS):.4f}", flush=True)


def teacher_loop(steps):
    torch.manual_seed(99)
    net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3)).eval()
    for _ in range(steps):
        for s in STUDENTS:
            x = torch.empty(12, 8)
            dist.recv(x, src=s)
            with torch.no_grad():
                dist.send((2 * net(x)).softmax(1), dst=s)


def run(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    student_group = dist.new_group(STUDENTS)
    if rank in STUDENTS:
        student_loop(rank, student_group, steps=15)
        dist.barrier(group=student_group)
    else:
        teacher_loop(steps=15)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(29655,), nprocs=WORLD)
