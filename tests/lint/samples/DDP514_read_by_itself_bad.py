import os
import uuid

import torch
import torch.distributed as dist


def main(loader):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda())
    name = f"best-{uuid.uuid4().hex}.pt"
    for batch in loader:
        model(batch).sum().backward()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), name)  # <-- DDP514
    dist.barrier()
    model.module.load_state_dict(torch.load(name, map_location="cpu"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main([torch.rand(8, device="cuda")])
