# learners 0..n-2 train together, the last process only plays evaluation episodes
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn


def policy():
    return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))


def rollout(net, steps, gen):
    obs = torch.randn(steps, 6, generator=gen)
    probs = net(obs).softmax(-1)
    act = torch.multinomial(probs.detach(), 1, generator=gen)
    rew = (act.squeeze(1) == obs[:, :3].argmax(1)).float()
    logp = probs.gather(1, act).squeeze(1).clamp_min(1e-6).log()
    return logp, rew


def average_grads(net, group, n):
    for p in net.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= n


def learn(args, rank, net, group, n_learners):
    gen = torch.Generator().manual_seed(500 + rank)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for it in range(args.iters):
        logp, rew = rollout(net, args.steps, gen)
        loss = -(logp * (rew - rew.mean())).mean()
        opt.zero_grad()
        loss.backward()
        average_grads(net, group, n_learners)
        opt.step()
        if it % 5 == 0:
            shown = rew.mean()
            dist.all_reduce(shown)
            if rank == 0:
                print("iter", it, "reward %.3f" % (shown.item() / n_learners), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=15)
    ap.add_argument("--steps", type=int, default=128)
    ap.add_argument("--lr", type=float, default=2e-2)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    learners = list(range(world - 1))
    torch.manual_seed(0)
    net = policy()

    group = dist.new_group(learners)
    if rank in learners:
        learn(args, rank, net, group, len(learners))

    for t in net.state_dict().values():
        dist.broadcast(t, src=0)
    if rank == world - 1:
        with torch.no_grad():
            _, rew = rollout(net, 256, torch.Generator().manual_seed(9))
        print("evaluator: %.3f" % rew.mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
