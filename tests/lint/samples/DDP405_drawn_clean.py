import torch
import torch.distributed as dist


def sample(model, wanted, rank):
    torch.manual_seed(5 + rank)
    done, parts = 0, []
    while done < wanted:
        noise = torch.randn(16, 3)
        found = model(noise)
        every = [torch.zeros_like(found) for _ in range(dist.get_world_size())]
        dist.all_gather(every, found)
        parts += every
        done += len(noise) * dist.get_world_size()
    return torch.cat(parts)[:wanted]


dist.init_process_group("gloo")
sample(torch.nn.Linear(3, 3), 100, dist.get_rank())
