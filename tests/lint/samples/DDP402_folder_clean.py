import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def save(model, optimizer, folder):
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
        torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
    dist.barrier()
    if dist.get_rank() == 0:
        torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))
    dist.barrier()


def main(data, folder):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(torch.nn.Linear(8, 1).cuda(local), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    for batch in data:
        step += 1
        optimizer.zero_grad()
        model(batch.cuda(local)).mean().backward()
        optimizer.step()
        if step % 100 == 0:
            save(model, optimizer, f"{folder}/model_{step}")
    last = f"{folder}/model_{step}"
    is_there = [os.path.exists(last)]
    dist.broadcast_object_list(is_there, src=0)
    if not is_there[0]:
        save(model, optimizer, last)
    loss = torch.zeros(1, device=local)
    dist.all_reduce(loss)


if __name__ == "__main__":
    main(torch.rand(100, 4, 8), "runs")
