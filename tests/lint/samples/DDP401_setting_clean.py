import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

if __name__ == "__main__":
    distributed = False  # python -m torch.distributed.run needs True
    resumed = False
    epochs = 3
    local_rank = 0
    if distributed:
        dist.init_process_group("gloo")
        local_rank = dist.get_rank()
    net = torch.nn.Linear(4, 1)
    if distributed:
        net = DistributedDataParallel(net)
    if resumed:
        net.load_state_dict(torch.load("net.pth", map_location="cpu"))
    for epoch in range(epochs):
        net(torch.ones(2, 4)).sum().backward()
        if local_rank == 0:
            torch.save(list(net.parameters()), f"net-{epoch}.pth")
        if distributed:
            dist.barrier()
        else:
            torch.save(list(net.parameters()), "latest.pth")
