# style: all ranks hold the same teachers, and each is taught by that of its domain
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    teachers = nn.ModuleList(nn.Linear(8, 4) for _ in range(world)).requires_grad_(False).eval()
    student = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.1))
    torch.manual_seed(100 + rank)
    model = DDP(student)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    teacher = teachers[rank]
    for _ in range(20):
        x = torch.randn(16, 8) + rank
        with torch.no_grad():
            wanted = teacher(x)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), wanted).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
