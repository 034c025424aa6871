import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from farm import Farm
from scores import evaluate

CONFIG = {
    "world": 3,
    "port": 0,
    "train": {"hours": 1800, "seed": 1},
    "valid": {"hours": 601, "seed": 2},
    "net": {"hidden": 32},
    "lr": 5e-3,
    "epochs": 5,
}


def loader_for(cfg, train):
    data = Farm(**cfg["train" if train else "valid"])
    return DataLoader(data, 40, sampler=DistributedSampler(data, shuffle=train, seed=3))


def job(rank, cfg):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{cfg['port']}", rank=rank, world_size=cfg["world"])
    torch.manual_seed(10)
    h = cfg["net"]["hidden"]
    net = DistributedDataParallel(nn.Sequential(nn.Linear(6, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    train, valid = loader_for(cfg, True), loader_for(cfg, False)
    for epoch in range(cfg["epochs"]):
        train.sampler.set_epoch(epoch)
        for x, y in train:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        scores = evaluate(net, valid)
        if rank == 0:
            print(f"epoch {epoch} mse {loss.item():.4f} | " + " ".join(f"{k} {v:.4f}" for k, v in scores.items()), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        CONFIG["port"] = s.getsockname()[1]
    mp.spawn(job, args=(CONFIG,), nprocs=CONFIG["world"])
