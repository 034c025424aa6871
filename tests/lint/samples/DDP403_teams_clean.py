import torch.distributed as dist

PER_TEAM = 2


def teams():
    first = range(0, dist.get_world_size(), PER_TEAM)
    return [dist.new_group(list(range(each, each + PER_TEAM))) for each in first]


def hand_out(net):
    mine = teams()[dist.get_rank() // PER_TEAM]
    lead = dist.get_global_rank(mine, 0)
    for each in net.parameters():
        dist.broadcast(each.data, lead, group=mine)
