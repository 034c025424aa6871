"""No DDP: weights are sent once, gradients are averaged in one flat message after backward."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def send_initial_weights(net):
    with torch.no_grad():
        flat = parameters_to_vector(net.parameters())
        dist.broadcast(flat, src=0)
        vector_to_parameters(flat, net.parameters())


def average_gradients(net):
    flat = torch.cat([p.grad.flatten() for p in net.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    pos = 0
    for p in net.parameters():
        p.grad.copy_(flat[pos:pos + p.numel()].view_as(p))
        pos += p.numel()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = nn.Linear(10, 4), nn.Linear(10, 1)

    def forward(self, obs):
        return torch.distributions.Categorical(logits=self.pi(obs)), self.v(obs).squeeze(1)


def main(updates=20):
    rank = dist.get_rank()
    torch.manual_seed(1 + rank)
    agent = Agent()
    send_initial_weights(agent)
    opt = torch.optim.Adam(agent.parameters(), lr=1e-2)
    for u in range(updates):
        obs = torch.randn(64, 10)
        policy, value = agent(obs)
        action = policy.sample()
        reward = (action == obs[:, :4].argmax(1)).float()
        adv = reward - value
        loss = -(policy.log_prob(action) * adv.detach()).mean() + 0.5 * adv.pow(2).mean() - 0.01 * policy.entropy().mean()
        opt.zero_grad()
        loss.backward()
        average_gradients(agent)
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        opt.step()
        r = reward.mean()
        dist.all_reduce(r)
        if rank == 0 and u % 5 == 0:
            print(f"update {u} reward {r.item() / dist.get_world_size():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
