"""Optimizers of other libraries, which step as those of torch do.

Source: their documentation and signatures.
"""

_STEPS = "new type=torch.optim.Optimizer"
_LIKE_TORCH = """
transformers.AdamW transformers.Adafactor
transformers.optimization.AdamW transformers.optimization.Adafactor
pytorch_transformers.AdamW pytorch_pretrained_bert.optimization.BertAdam
apex.optimizers.FusedAdam apex.optimizers.FusedLAMB apex.optimizers.FusedSGD
apex.optimizers.FusedNovoGrad apex.optimizers.FusedAdagrad
bitsandbytes.optim.Adam8bit bitsandbytes.optim.AdamW8bit bitsandbytes.optim.PagedAdamW8bit
deepspeed.ops.adam.FusedAdam deepspeed.ops.lamb.FusedLamb
timm.optim.AdamP timm.optim.AdamW timm.optim.Lamb timm.optim.Lars timm.optim.Lion timm.optim.Nadam
timm.optim.RAdam timm.optim.SGDP
torch_optimizer.AdaBound torch_optimizer.AdamP torch_optimizer.Lamb torch_optimizer.RAdam
torch_optimizer.Ranger torch_optimizer.SGDP
adabelief_pytorch.AdaBelief lion_pytorch.Lion prodigyopt.Prodigy dadaptation.DAdaptAdam
schedulefree.AdamWScheduleFree schedulefree.SGDScheduleFree
"""
_REST = f"""
deepspeed.ops.adam.DeepSpeedCPUAdam             {_STEPS} parameters=model_params@0 lr=lr@1
timm.optim.create_optimizer                     {_STEPS} parameters=model@1
timm.optim.create_optimizer_v2                  {_STEPS} parameters=model_or_params@0 lr=lr@2
timm.optim.optim_factory.create_optimizer       {_STEPS} parameters=model@1
timm.optim.optim_factory.create_optimizer_v2    {_STEPS} parameters=model_or_params@0 lr=lr@2
"""
EFFECTS = "\n".join(
    [f"{name} {_STEPS} parameters=params@0 lr=lr@1" for name in _LIKE_TORCH.split()] + [_REST]
)
