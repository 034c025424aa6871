"""The loaders of PyG, MONAI and TorchIO, which hand all that they do not know on to torch's.

Source: their documentation and signatures.
"""

_KEPT = "batch_sampler sampler num_workers drop_last worker_init_fn generator start=multiprocessing_context"
_HANDED_ON = " ".join(f"{each}@" if "=" in each else f"{each}={each}@" for each in _KEPT.split())
_PYG = "new type=torch.utils.data.DataLoader dataset=dataset@0 batch_size=batch_size@1 shuffle=shuffle@2"
_MONAI = (
    "new type=torch.utils.data.DataLoader dataset=dataset@0 batch_size=batch_size@ shuffle=shuffle@"
)
_TORCHIO = f"{_MONAI} collate_fn=collate_fn@1"
EFFECTS = f"""
torch_geometric.loader.DataLoader             {_PYG} {_HANDED_ON}
torch_geometric.loader.dataloader.DataLoader  {_PYG} {_HANDED_ON}
torch_geometric.data.DataLoader               {_PYG} {_HANDED_ON}
monai.data.DataLoader                         {_MONAI} {_HANDED_ON}
monai.data.dataloader.DataLoader              {_MONAI} {_HANDED_ON}
torchio.SubjectsLoader                        {_TORCHIO} {_HANDED_ON}
torchio.data.SubjectsLoader                   {_TORCHIO} {_HANDED_ON}
"""
