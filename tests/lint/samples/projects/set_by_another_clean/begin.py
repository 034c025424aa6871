import talk
import torch.distributed as dist


def join(host, per_host, hosts):
    dist.init_process_group("nccl")
    for each in range(hosts):
        group = dist.new_group(list(range(each * per_host, (each + 1) * per_host)))
        if each == host:
            talk.OF_THIS_HOST = group
