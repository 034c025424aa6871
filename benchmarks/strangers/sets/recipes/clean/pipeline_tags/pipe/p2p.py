import torch
import torch.distributed as dist


class Channel:
    def __init__(self, peer, shape):
        self.peer, self.shape = peer, shape

    def push(self, tensor, tag):
        dist.send(tensor.detach().contiguous(), dst=self.peer, tag=tag)

    def pull(self, tag):
        buf = torch.empty(self.shape)
        dist.recv(buf, src=self.peer, tag=tag)
        return buf
