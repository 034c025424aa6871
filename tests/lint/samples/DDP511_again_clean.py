import os
import time

import torch
import torch.distributed as dist


def keep(net, folder):
    written = False
    while not written:
        try:
            if dist.get_rank() == 0:
                torch.save(net.state_dict(), os.path.join(folder, "last.pt"))
            dist.barrier()
            written = True
        except OSError:
            time.sleep(1)


def keep_at_once(net, folder):
    while True:
        try:
            if dist.get_rank() == 0:
                torch.save(net.state_dict(), os.path.join(folder, "last.pt"))
            dist.barrier()
            return
        except OSError:
            continue


def is_kept(net, folder):
    try:
        if dist.get_rank() == 0:
            torch.save(net.state_dict(), os.path.join(folder, "last.pt"))
        dist.barrier()
    except OSError:
        return False
    return True


def once_more(net, folder):
    while True:
        try:
            if dist.get_rank() == 0:
                torch.save(net.state_dict(), os.path.join(folder, "sizes.pt"))
            dist.barrier()
        except OSError:
            continue
        dist.all_reduce(torch.ones(1))
        return


dist.init_process_group("gloo")
keep(torch.nn.Linear(4, 1), "kept")
keep_at_once(torch.nn.Linear(4, 1), "kept")
once_more(torch.nn.Linear(4, 1), "kept")
while not is_kept(torch.nn.Linear(4, 1), "kept"):
    time.sleep(1)
for wait in range(5):
    there = is_kept(torch.nn.Linear(4, 1), "other")
    if there:
        break
