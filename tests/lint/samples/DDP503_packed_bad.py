import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Batch, Data


class Graphs:
    def __init__(self, paths):
        self.paths = paths

    def process(self, state):
        graphs = []
        for path in self.paths:
            with open(path) as lines:
                rows = [[int(each) for each in line.split()] for line in lines]
            graphs.append(Data(edge_index=torch.tensor(rows).t(), num_nodes=9))
        torch.save(Batch().from_data_list([state]), "graphs/data.pt")  # <-- DDP503

    def train(self):
        dist.init_process_group("gloo")
        graphs = torch.load("graphs/data.pt", map_location="cpu")
        model = DistributedDataParallel(nn.Linear(8, 1))
        model(graphs.x[dist.get_rank() :: dist.get_world_size()]).mean().backward()
