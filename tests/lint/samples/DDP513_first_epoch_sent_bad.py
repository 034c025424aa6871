import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def resume(path, model, opt):
    first = [0]
    if dist.get_rank() == 0:
        blob = torch.load(path)  # <-- DDP513 likely
        model.load_state_dict(blob["model"])
        opt.load_state_dict(blob["opt"])
        first = [blob["epoch"] + 1]
    dist.broadcast_object_list(first, src=0)
    return first[0]


def main(path):
    dist.init_process_group("gloo")
    model = torch.nn.Linear(4, 4)
    opt = torch.optim.Adam(model.parameters())
    first = resume(path, model, opt)
    model = DDP(model)
    for _ in range(first, 10):
        loss = model(torch.randn(2, 4)).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()


main("x.pt")
