import torch
import torch.distributed as dist


def mean_of_all(net):
    for weight in net.parameters():
        if weight.grad is not None:
            dist.all_reduce(weight.grad)
            weight.grad /= dist.get_world_size()


def cut(net, most):
    return torch.nn.utils.clip_grad_norm_(net.parameters(), most)


dist.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
own = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    opt.zero_grad()
    net(torch.randn(8, 4, generator=own)).pow(2).mean().backward()
    mean_of_all(net)
    cut(net, 0.5)
    opt.step()
dist.destroy_process_group()
