import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

dist.init_process_group("nccl")
device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
torch.cuda.set_device(device)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(
    device
)
step = torch.optim.SGD(net.parameters(), lr=0.1)  # <-- DDP305
model = FSDP(net)
for _ in range(20):
    step.zero_grad()
    x = torch.rand(16, 8, device=device)
    (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
    step.step()
dist.destroy_process_group()
