"""Two pipeline stages on two processes: activations go forward, gradients come back."""
import torch
import torch.distributed as dist
import torch.nn as nn

MICRO, SIZE, STEPS = 4, 8, 12


def stage_one(x_batches, net, opt):
    for step in range(STEPS):
        outs = []
        for x in x_batches[step]:
            act = net(x)
            dist.send(act.detach(), dst=1)
            outs.append(act)
        for act in outs:
            grad = torch.empty_like(act)
            dist.recv(grad, src=1)
            act.backward(grad)
        opt.step()
        opt.zero_grad()


def stage_two(y_batches, net, opt, width):
    last = 0.0
    for step in range(STEPS):
        pending = []
        for y in y_batches[step]:
            act = torch.empty(SIZE, width)
            dist.recv(act, src=0)
            act.requires_grad_()
            loss = nn.functional.mse_loss(net(act), y) / MICRO
            loss.backward()
            pending.append(act.grad)
            last = loss.item() * MICRO
        for grad in pending:
            dist.send(grad, dst=0)
        opt.step()
        opt.zero_grad()
    return last


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    g = torch.Generator().manual_seed(0)
    x = torch.randn(STEPS, MICRO, SIZE, 5, generator=g)
    y = x.sum(-1, keepdim=True)
    torch.manual_seed(40 + rank)
    if rank == 0:
        net = nn.Sequential(nn.Linear(5, 16), nn.ReLU())
        stage_one(x, net, torch.optim.Adam(net.parameters(), lr=1e-2))
    else:
        net = nn.Linear(16, 1)
        last = stage_two(y, net, torch.optim.Adam(net.parameters(), lr=1e-2), 16)
        print(f"last loss {last:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
