import torch
import torch.distributed as dist


def held_out_report(net, held, topk, rank, world):
    """Recall@k and mean reciprocal rank of the held-out item, users dealt over the processes."""
    mine = [u for u in held if u % world == rank]
    u = torch.tensor(mine)
    gold = torch.tensor([held[x] for x in mine])
    scores = net.rank_items(u)
    place = (scores > scores.gather(1, gold[:, None])).sum(1) + 1
    rr = torch.tensor([(1.0 / place).sum().item(), float(len(mine))])
    dist.all_reduce(rr)
    recall = (place <= topk).float().mean().item()
    return {"recall": recall, "mrr": (rr[0] / rr[1]).item()}
