"""Best checkpoint by one rank's metric.

## What it does
Finds comparisons such as `if val_loss < best:` on a metric that was not reduced over the ranks,
where a checkpoint is saved under it.

## Why is this bad?
Each rank saw its own shard: the "best" model is the best of a fraction of the data, and each rank
believes in another epoch.

## Example
```python
accuracy = evaluate(model, shard)
if accuracy > best:
    best = accuracy
    torch.save(model.state_dict(), path)
```

## Use instead
```python
accuracy = evaluate(model, shard)
dist.all_reduce(accuracy, op=dist.ReduceOp.AVG)
if accuracy > best:
    ...
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared, local_reason
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import last_name
from ddpdoctor.lint.engine.vocabulary import SAMPLER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP214"
NAME = "metric-not-reduced"
CONFIDENCE: Confidence = "likely"
WORDS = ("best",)
ALSO = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield saves that hang on a metric of this rank alone."""
    if not module.wraps or not module.calls_of(*SAMPLER):
        return
    for branch in module.ifs:
        words = {last_name(node).lower() for node in module.within(branch.test)}
        if not any("best" in word for word in words):
            continue
        saves = [call for call in module.calls_of("torch.save") if module.inside(call, branch)]
        reason = local_reason(module, branch.test)
        if saves and reason and not is_shared(module, branch, module.scope(branch)):
            yield Hit(
                branch.test,
                "the best checkpoint is chosen by this rank's own metric",
                notes=(reason,),
                help="sum the metric and its count over the ranks first",
            )
