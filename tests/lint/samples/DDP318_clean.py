from torch.nn.parallel import DistributedDataParallel as DDP


def sample(net, x):
    print(net.generate(x))
    model = DDP(net)
    model.train()
    model.marker = 1
    if hasattr(model, "generate"):
        return model.generate(x)
    return model.module.generate(x), model.marker, model.device_ids
