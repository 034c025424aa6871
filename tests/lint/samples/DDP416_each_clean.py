import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def scores_of(net, points):
    found = {"squared": net(points).pow(2).mean(), "absolute": net(points).abs().mean()}
    for score in found.values():
        dist.all_reduce(score)
    return {f"held_out/{name}": score.item() for name, score in found.items()}


def keep(net, scores, best):
    if scores["held_out/squared"] < best:
        dist.barrier()
        return scores["held_out/squared"]
    return best


def by_name(net, points):
    found = {}
    found["squared"] = net(points).pow(2).mean()
    found["absolute"] = net(points).abs().mean()
    for name in sorted(found):
        dist.all_reduce(found[name])
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
            if by_name(net.module, points)["absolute"].item() < 0.1:
                break
        net(points).mean().backward()
    dist.destroy_process_group()


main()
