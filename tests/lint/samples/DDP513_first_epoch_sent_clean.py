import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def resume(path, model, opt):
    sent = [None]
    if dist.get_rank() == 0:
        blob = torch.load(path)
        model.load_state_dict(blob["model"])
        opt.load_state_dict(blob["opt"])
        sent = [(blob["opt"], blob["epoch"] + 1)]
    dist.broadcast_object_list(sent, src=0)
    moments, first = sent[0]
    if dist.get_rank() != 0:
        opt.load_state_dict(moments)
    return first


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
