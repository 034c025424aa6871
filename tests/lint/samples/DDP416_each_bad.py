import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def scores_of(net, points):
    found = {"squared": net(points).pow(2).mean(), "absolute": net(points).abs().mean()}
    for score in found.values():
        dist.reduce(score, dst=0)  # <-- DDP416
    return {f"held_out/{name}": score.item() for name, score in found.items()}


def keep(net, scores, best):
    if scores["held_out/squared"] < best:  # <-- DDP402
        dist.barrier()
        return scores["held_out/squared"]
    return best


def by_name(net, points):
    found = {}
    found["squared"] = net(points).pow(2).mean()
    found["absolute"] = net(points).abs().mean()
    for name in sorted(found):
        dist.reduce(found[name], dst=0)  # <-- DDP416
    return found


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    points = torch.randn(8, 4)
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    best = float("inf")
    for _ in range(5):
        with torch.no_grad():
            best = keep(net, scores_of(net.module, points), best)
            if by_name(net.module, points)["absolute"].item() < 0.1:  # <-- DDP405
                break
        net(points).mean().backward()
    dist.destroy_process_group()


main()
