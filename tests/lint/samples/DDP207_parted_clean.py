import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rng = np.random.default_rng(dist.get_rank())
seen = torch.as_tensor(rng.normal(size=(128, 4)), dtype=torch.float32)
net = DistributedDataParallel(torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
order = np.arange(len(seen))
for _ in range(5):
    np.random.shuffle(order)
    for part in np.array_split(order, 8):
        opt.zero_grad()
        net(seen[torch.as_tensor(part)]).square().mean().backward()
        opt.step()
dist.destroy_process_group()
