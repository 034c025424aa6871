import itertools
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")


def examples(seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randn(4, 4, generator=g)


net = DDP(torch.nn.Linear(4, 4))
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
accumulate = 2
stream = examples(dist.get_rank())
for step in range(9):
    batches = list(itertools.islice(stream, accumulate))
    for i, b in enumerate(batches):
        net.require_backward_grad_sync = i == accumulate - 1
        net(b).mean().backward()
    opt.step()
    opt.zero_grad()
