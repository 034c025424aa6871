"""How smooth the ways between samples are; a measure of before is left here."""

import sys

import torch


def around(one, other, part):
    one = one / one.norm(dim=-1, keepdim=True)
    other = other / other.norm(dim=-1, keepdim=True)
    angle = part * torch.acos((one * other).sum(-1, keepdim=True))
    return one * torch.cos(angle) + (other - one) * torch.sin(angle)


def straight(one, other, part):
    return one + (other - one) * part


def main(weights):
    net = torch.nn.Linear(8, 8)
    net.load_state_dict(torch.load(weights, map_location="cpu"))
    with torch.no_grad():
        ends = net(torch.rand(2, 8))
        print((straight(ends[0], ends[1], 0.5) - net(torch.rand(8))).square().mean())


if __name__ == "__main__":
    main(sys.argv[1])
