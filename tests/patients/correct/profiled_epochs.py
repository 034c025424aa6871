# style: functions, torch.profiler on the main process
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def step(model, optimizer, x):
    with record_function("forward"):
        loss = model(x).logsumexp(1).mean()
    optimizer.zero_grad()
    with record_function("backward"):
        loss.backward()
    optimizer.step()
    return loss


def train(model, optimizer, rank, steps, profiler=None):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        loss = step(model, optimizer, torch.randn(16, 8, generator=generator))
        if profiler is not None:
            profiler.step()
    return loss


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if rank == 0:
        plan = schedule(wait=1, warmup=1, active=2)
        with profile(activities=[ProfilerActivity.CPU], schedule=plan) as profiler:
            loss = train(model, optimizer, rank, 6, profiler)
        table = profiler.key_averages().table(sort_by="cpu_time_total", row_limit=3)
        print(len(table) > 0, f"{loss.item():.3f}")
    else:
        train(model, optimizer, rank, 6)
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
