"""Each rank has other songs, and all of them stop at the same one: they count what they hear."""

import argparse
import glob

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def songs_of(rank, world):
    return [
        torch.load(name) for name in sorted(glob.glob("songs/*.pt"))[rank::world] if "b" in name
    ]


def fewest(songs):
    number = torch.tensor(len(songs))
    dist.all_reduce(number, op=dist.ReduceOp.MIN)
    return int(number)


def by_place(net, songs, agreed):
    for place, song in enumerate(songs):
        if place >= agreed:
            break
        net(song).sum().backward()


def by_count(net, songs, agreed):
    heard = 0
    for song in songs:
        if heard == agreed:
            break
        net(song).sum().backward()
        heard += 1


def by_what_is_left(net, songs, agreed):
    left = agreed
    for song in songs:
        if not left:
            break
        left -= 1
        net(song).sum().backward()


def by_option(net, songs, most):
    for place, song in enumerate(songs, 1):
        net(song).sum().backward()
        if place == most:
            break


def by_word(net, songs):
    rest = len(songs)
    for song in songs:
        rest -= 1
        goes_on = torch.tensor(float(rest > 0))
        net(song).sum().backward()
        dist.all_reduce(goes_on, op=dist.ReduceOp.MIN)
        if goes_on.item() == 0:
            break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=20)
    given = parser.parse_args()
    dist.init_process_group("gloo")
    songs = songs_of(dist.get_rank(), dist.get_world_size())
    net = DistributedDataParallel(nn.Linear(4, 1))
    agreed = fewest(songs)
    by_place(net, songs, agreed)
    by_count(net, songs, agreed)
    by_what_is_left(net, songs, agreed)
    by_option(net, songs, given.most)
    by_word(net, songs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
